"""Sizes of Warner et al., 2024, table 4, and of the released configuration."""

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models import CocoLM, Electra, MaskedLM, Teams
from keras_corrupt.models.weightless import weightless


def test_base_is_theirs():
    sizes = MaskedLM.presets["modern_base"]["encoder"]
    assert Electra.presets["modern_base"]["discriminator"] == sizes
    assert Teams.presets["modern_base"]["discriminator"] == sizes
    with weightless():
        encoder = TransformerEncoder(**sizes)
        coco_lm = CocoLM.from_preset("modern_base")
    assert coco_lm.encoder.architecture == encoder.architecture
    assert coco_lm.generator.encoder.num_layers == 7
    vocabulary, hidden, inner, layers = 50_368, 768, 2304 // 2, 22
    layer = 4 * hidden**2 + 3 * hidden * inner + 2 * hidden
    assert encoder.count_params() == (vocabulary + 1) * hidden + layers * layer
    assert round(encoder.count_params() / 1e6) == 149
    attention = [layer.attention for layer in encoder.layers_]
    windows = [getattr(part, "window", None) for part in attention]
    assert windows == [None if i % 3 == 0 else 128 for i in range(layers)]
    assert encoder.max_length == 8192 and encoder.num_heads == 12
    assert not encoder.has_dropout and encoder.layer_norm_epsilon == 1e-5
    for part, window in zip(attention, windows, strict=True):
        slowest = (160_000 if window is None else 10_000) ** -(62 / 64)
        assert abs(part.rotary.frequencies[-1] / slowest - 1) < 1e-5
