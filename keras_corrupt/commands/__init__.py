"""Shared by all commands: how they begin and end, and the bounds of their numbers."""
