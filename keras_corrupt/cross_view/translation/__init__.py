"""Translation with Cross-View Training (Clark's thesis, 4.2.4)."""
