"""Replace MLM's sizes: Clark's thesis, table 5.1, which are ELECTRA's (5.4.3).

`tiny` is ours, for CPUs and tests. A preset is the keyword arguments of `ReplaceMLM`.
"""

from keras_corrupt.models.encoder_sizes import DETECTORS

PRESETS = DETECTORS
