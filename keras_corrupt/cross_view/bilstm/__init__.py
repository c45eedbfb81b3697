"""BiLSTMs over words and their letters (Clark's thesis, 4.2.1)."""
