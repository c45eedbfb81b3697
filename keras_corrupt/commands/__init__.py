"""What all commands share: how they begin and end, and what their numbers may be."""
