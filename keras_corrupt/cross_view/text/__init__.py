"""Sentences and words as integers, and batches of them."""
