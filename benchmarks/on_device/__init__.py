"""Pretraining on one accelerator, with the data on the device."""
