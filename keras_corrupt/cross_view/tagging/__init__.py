"""Tagging, on BiLSTMs and on pretrained Transformers (Clark's thesis, 4.2.2)."""
