"""Electric: an energy-based cloze model."""
