"""Masked language modelling (BERT)."""
