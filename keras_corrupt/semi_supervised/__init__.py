"""Semi-supervised learning: Cross-View Training (Clark's thesis, chapter 4)."""
