"""Sizes of the masked language models that ELECTRA is compared with.

Clark's thesis, 5.2.3 and table 5.1: BERT-Small, BERT-Base and BERT-Large have the
sizes of the ELECTRA discriminator of the same name (`tiny` is ours, for CPUs and
tests). A preset is the keyword arguments of `MaskedLM`.
"""

from keras_corrupt.models.encoder_sizes import ENCODERS

PRESETS = {
    name: {"encoder": encoder, "mask_rate": 0.15} for name, encoder in ENCODERS.items()
}
