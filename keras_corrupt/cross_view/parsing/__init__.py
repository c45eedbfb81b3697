"""Dependency parsing (Clark's thesis, 4.2.3)."""
