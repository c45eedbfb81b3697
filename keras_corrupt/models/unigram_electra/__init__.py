"""ELECTRA whose generator is a list of frequencies."""
