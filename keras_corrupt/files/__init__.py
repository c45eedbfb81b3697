"""Files, whatever is in them: text of users (`text.py`), writing (`whole.py`)."""
