"""Files: users' text (`text.py`), tables and addresses; writing whole (`whole.py`)."""
