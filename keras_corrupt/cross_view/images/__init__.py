"""Classifying images with Cross-View Training (Clark's thesis, 4.4)."""
