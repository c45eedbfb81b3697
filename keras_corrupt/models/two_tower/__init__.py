"""The two-tower cloze model, Electric's noise distribution."""
