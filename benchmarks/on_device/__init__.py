"""Pretraining on one accelerator, a hundred updates in one program."""
