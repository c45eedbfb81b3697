"""Devices: which train, and what they owe each other."""
