"""ELECTRA's sizes: Clark's thesis, table 5.1 (`tiny` is ours, for CPUs and tests).

A preset is the keyword arguments of `Electra`.
"""

from keras_corrupt.models.encoder_sizes import DETECTORS

PRESETS = DETECTORS
