"""Replaced token detection: what ELECTRA and the systems built on it share."""
