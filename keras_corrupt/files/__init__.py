"""Files, whatever is in them. See `text.py` for text of users."""
