"""Sizes of the discriminators: Clark's thesis, table 5.1 (`tiny` is ours).

A preset is the keyword arguments of `UnigramElectra`.
"""

from keras_corrupt.models.encoder_sizes import ENCODERS, MASK_RATES

PRESETS = {
    size: {"discriminator": ENCODERS[size], "mask_rate": MASK_RATES[size]}
    for size in ENCODERS
}
