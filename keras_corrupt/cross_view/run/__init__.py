"""Runs: their settings, starts, optimizers and command line."""
