"""Pretraining models, one folder each. Start with README.md in this folder."""

from keras_corrupt.models.electra.electra import Electra
from keras_corrupt.models.masked_lm.masked_lm import MaskedLM

__all__ = ["Electra", "MaskedLM"]
