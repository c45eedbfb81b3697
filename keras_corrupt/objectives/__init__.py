"""Objectives: what a pretraining model learns from, one a file."""

from keras_corrupt.objectives.objective import Objective

__all__ = ["Objective"]
