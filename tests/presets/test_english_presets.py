"""The presets that come with the package."""

import numpy as np
import pytest

from keras_corrupt.models import Electra
from keras_corrupt.scoring import replaced_words

#: A sentence, and one of its words with one that does not fit.
SENTENCES = [
    ("the captain of the ship looked at the {} .", "sea", "because"),
    ("she was born in {} and died in london .", "1923", "table"),
    ("the film was released in the united {} in 2004 .", "states", "them"),
    ("the king and his son were killed in the {} .", "battle", "which"),
    ("they have been playing football for many {} .", "years", "he"),
]


#: Preset -> bytes of its files, at most.
PRESETS = {"tiny_en": 10e6, "small_en": 40e6}


@pytest.fixture(scope="module", params=PRESETS)
def model(request):
    return Electra.from_preset(request.param)


def test_all_are_tested():
    assert Electra.trained_presets.keys() == PRESETS.keys()


@pytest.mark.parametrize("preset", PRESETS)
def test_is_small_and_has_a_card(preset):
    directory = Electra.trained_presets[preset]
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < PRESETS[preset]
    card = (directory / "README.md").read_text()
    for heading in ("Data", "Training", "Scores", "cannot"):
        assert f"## {heading}" in card or heading in card


def test_suspects_what_does_not_fit(model):
    def probabilities(choice):
        texts = [sentence[0].format(sentence[choice]) for sentence in SENTENCES]
        for (_, *words), scores in zip(
            SENTENCES, replaced_words(model, texts), strict=True
        ):
            (word,) = (w for w in scores if w.text == words[choice - 1])
            yield word.score

    right, wrong = (np.array([*probabilities(choice)]) for choice in (1, 2))
    assert (wrong > right + 0.2).sum() >= 4
    assert wrong.max() > 0.6


def test_the_generator_knows_frequent_phrases(model):
    batch = model.tokenizer.pack(["new york and the united states of america"], 32)
    tokens = model.tokenizer.tokens(batch["token_ids"][0])
    place = tokens.index("states")
    batch["token_ids"][0, place] = model.tokenizer.mask_id
    logits = np.array(model.generator(batch, np.array([[place]])))[0, 0]
    assert model.tokenizer.vocabulary[logits.argmax()] == "states"
