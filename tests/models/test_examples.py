import re

import numpy as np
import pytest

from keras_corrupt import models
from keras_corrupt.corruption import Masking
from keras_corrupt.corruption.corrupted import Corrupted, Predictions
from keras_corrupt.objectives.masked_tokens import MaskedTokens
from keras_corrupt.objectives.rendering import render
from keras_corrupt.objectives.replaced_tokens import Detections, ReplacedTokens
from keras_corrupt.objectives.restored_tokens import RestoredTokens

#: Ids 5 to 11 of the tokenizer: the a cat dog sat ran on; 17 is ##s.
INPUTS = {
    "token_ids": np.array([[2, 5, 7, 9, 3, 0], [2, 8, 17, 10, 11, 3]], "int32"),
    "segment_ids": np.zeros((2, 6), "int32"),
    "padding_mask": np.array([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]], "int32"),
}


def described(objective, tokenizer, **outputs):
    def describe(row, ids):
        return objective().describe(outputs, row, ids, tokenizer.readable)

    return render(tokenizer, INPUTS, describe)


def detections(tokenizer, corrupted_ids, logits):
    text = Corrupted(INPUTS["token_ids"], corrupted_ids, None, None, None)
    found = Detections(logits, text.replaced, INPUTS["padding_mask"])
    return described(ReplacedTokens, tokenizer, corrupted=text, rtd=found)


def test_detections(tokenizer):
    assert tokenizer.vocabulary[17] == "##s"
    corrupted_ids = INPUTS["token_ids"].copy()
    corrupted_ids[0, 2] = 8
    logits = np.full((2, 6), -3.0)
    logits[0, 2] = np.log(0.9 / 0.1)
    logits[0, 3] = np.log(0.75 / 0.25)  # an original token, suspected
    logits[0, 5] = 9.0  # padding: not shown
    assert detections(tokenizer, corrupted_ids, logits) == [
        "[CLS] the [cat > dog 0.90] <sat 0.75> [SEP]",
        "[CLS] dogs ran on [SEP]",
    ]


def test_a_missed_replacement_is_shown(tokenizer):
    corrupted_ids = INPUTS["token_ids"].copy()
    corrupted_ids[1, 4] = 5
    logits = np.full((2, 6), np.log(0.2 / 0.8))
    text = detections(tokenizer, corrupted_ids, logits)[1]
    assert text == "[CLS] dogs ran [on > the 0.20] [SEP]"


def test_a_described_piece_keeps_its_mark(tokenizer):
    corrupted_ids = INPUTS["token_ids"].copy()
    corrupted_ids[1, 2], corrupted_ids[1, 3] = 6, 17
    logits = np.zeros((2, 6))
    assert detections(tokenizer, corrupted_ids, logits)[1] == (
        "[CLS] dog [##s > a 0.50] [ran > ##s 0.50] on [SEP]"
    )


def test_predictions(tokenizer):
    logits = np.zeros((2, 2, tokenizer.vocabulary_size))
    logits[0, 0, 8] = logits[0, 1, 6] = logits[1, 0, 10] = logits[1, 1, 7] = 1.0
    # The second slot of the second example is spare.
    masking = Masking(np.array([[2, 3], [3, 0]]), np.array([[1.0, 1.0], [1.0, 0.0]]))
    predictions = Predictions(None, masking, None, logits)
    assert described(MaskedTokens, tokenizer, mlm=predictions) == [
        "[CLS] the [cat: dog] [sat: a] [SEP]",
        "[CLS] dogs [ran: ran] on [SEP]",
    ]


@pytest.mark.parametrize(
    "name",
    ["CocoLM", "Electra", "ElectraTT", "Electric", "MaskedLM", "Teams", "TwoTower"],
)
def test_on_a_model(name, sizes, tokenizer):
    """Taking the marks away gives the text back."""
    size = sizes["discriminator"] | {"vocabulary_size": tokenizer.vocabulary_size}
    networks = {"encoder": size}
    if name in ("Electra", "ElectraTT", "Electric"):
        networks = {"discriminator": size, "generator": sizes["generator"]}
    if name == "CocoLM":
        size |= {"embedding_size": size["hidden_size"]}
        networks = {"discriminator": size, "generator": {}}
    if name == "Teams":
        networks = {"discriminator": size, "generator_layers": 2}
    cls = getattr(models, name)
    masks = {} if name == "TwoTower" else {"mask_rate": 0.5}
    model = cls(**networks, **masks, tokenizer=tokenizer)
    inputs = tokenizer.pack(["the dog ran on the mat.", "a quick cat sat"], 24)
    texts = model.describe_examples(inputs)
    assert any(" > " in text or ": " in text for text in texts)
    marks = r"\[(\S+) > \S+ [\d.]+(?:: \S+)?\]|\[(\S+): \S+\]|<(\S+) [\d.]+>"
    plain = [re.sub(marks, lambda m: m[1] or m[2] or m[3], text) for text in texts]
    assert plain == [
        "[CLS] the dog ran on the mat . [SEP]",
        "[CLS] a quick cat sat [SEP]",
    ]


def test_restorations(tokenizer):
    """`sat` became `dog`, and the model would write `sat`."""
    logits = np.zeros((2, 2, tokenizer.vocabulary_size))
    logits[0, 0, 9], logits[0, 1, 7] = 1.0, 1.0
    masking = Masking(np.array([[3, 2], [0, 0]]), np.array([[1.0, 0.0], [0.0, 0.0]]))
    text = Corrupted(None, None, masking, None, np.array([[8, 6], [5, 5]]))
    assert described(RestoredTokens, tokenizer, corrupted=text, lm=logits) == [
        "[CLS] the cat [sat > dog: sat] [SEP]",
        "[CLS] dogs ran on [SEP]",
    ]
