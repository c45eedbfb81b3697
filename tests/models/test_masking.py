"""What every system may be told to corrupt: tokens, whole words, spans; which roles."""

import numpy as np
import pytest

from keras_corrupt.models import CocoLM, Electra, ElectraTT, Electric, MaskedLM, Teams
from tests.conftest import SIZES
from tests.models.conftest import arrays

TEXTS = ["the dogs ran slowly on the mats .", "a quick cat sat under the rugs"] * 8


def make(system, tokenizer, **options):
    sizes = {"vocabulary_size": tokenizer.vocabulary_size} if tokenizer else {}
    sizes = SIZES["discriminator"] | sizes
    if system is Teams:
        return Teams(sizes, 2, tokenizer=tokenizer, **options)
    if system is CocoLM:
        sizes |= {"embedding_size": sizes["hidden_size"]}
        return CocoLM(sizes, {}, tokenizer=tokenizer, **options)
    if system is MaskedLM:
        return MaskedLM(sizes, tokenizer=tokenizer, **options)
    return system(sizes, SIZES["generator"], tokenizer=tokenizer, **options)


def masking_of(model, inputs):
    outputs = arrays(model(inputs))
    return (outputs.get("corrupted") or outputs["mlm"]).masking


@pytest.mark.parametrize(
    "system", [CocoLM, Electra, ElectraTT, Electric, MaskedLM, Teams]
)
@pytest.mark.parametrize("masking", ["whole_word", "span"])
def test_pieces_of_a_word_are_masked_together(system, masking, tokenizer):
    model = make(system, tokenizer, masking=masking, mask_rate=0.5)
    inputs = tokenizer.pack(TEXTS, 24)
    found = masking_of(model, inputs)
    starts = tokenizer.word_starts[inputs["token_ids"]]
    masked = np.zeros(starts.shape, bool)
    for row, (slots, weights) in enumerate(zip(*found, strict=True)):
        masked[row, slots[weights > 0]] = True
    assert masked.any() and (masked & ~starts).any()
    # A piece that goes on with a word is masked just where the one before it is.
    inside = ~starts[:, 1:]
    np.testing.assert_array_equal(masked[:, 1:][inside], masked[:, :-1][inside])
    assert model.from_config(model.get_config()).masker.options["masking"] == masking


def test_words_need_a_tokenizer(sizes, inputs):
    model = Electra(**sizes, masking="whole_word")
    with pytest.raises(ValueError, match="`masking='whole_word'` needs.*`tokenizer`"):
        model(inputs)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"masking": "words"}, "`masking` must be one of.*whole_word.*got 'words'"),
        ({"span_lengths": "long"}, "`span_lengths` must be one of.*got 'long'"),
        ({"span_length": 0.5}, "`span_length` must be 1 or more; got 0.5"),
    ],
)
def test_unknown_maskings_are_refused(sizes, options, message):
    with pytest.raises(ValueError, match=message):
        Electra(**sizes, **options)


def test_a_system_decides_which_roles_may_be_masked(tokenizer):
    """COCO-LM's auxiliary may mask [CLS] and [SEP]; padding stays."""

    class Everything(MaskedLM):
        unmaskable_roles = ("padding",)

    model = make(MaskedLM, tokenizer)
    assert model.unmaskable_ids == (0, 2, 3)
    sizes = SIZES["discriminator"] | {"vocabulary_size": tokenizer.vocabulary_size}
    model = Everything(sizes, mask_rate=0.9, tokenizer=tokenizer)
    inputs = tokenizer.pack(TEXTS, 24)
    predictions = arrays(model(inputs))["mlm"]
    targets = predictions.target_ids[predictions.masking.weights > 0]
    assert {tokenizer.classify_id, tokenizer.separate_id} <= set(targets.tolist())
    assert tokenizer.padding_id not in targets
