"""ELECTRA-TT's sizes: Clark's thesis, table 5.1, which are ELECTRA's.

Each of the generator's two towers has the sizes of ELECTRA's generator (`tiny` is ours,
for CPUs and tests). A preset is the keyword arguments of `ElectraTT`.
"""

from keras_corrupt.models.encoder_sizes import DETECTORS

PRESETS = DETECTORS
