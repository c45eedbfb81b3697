import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.downstream import PromptClassifier, TextClassifier
from keras_corrupt.downstream.prompts import Template, demonstration_sets
from keras_corrupt.models import CocoLM, MaskedLM
from keras_corrupt.presets import load_preset
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from keras_corrupt.tokenizers.byte_bpe import ByteBPETokenizer
from tests.conftest import SIZES
from tests.downstream.conftest import cats_and_dogs, scrambled
from tests.models import make_coco_lm

WORDS = "the a cat dog sat ran on under mat rug it was meow woof . , fun ##ny".split()
TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])
PROMPT = {
    "template": "{first} , it was [MASK] .",
    "label_words": {"cat": "meow", "dog": "woof"},
}
ENCODER = {
    **SIZES["discriminator"],
    **{"initializer_range": 0.2, "dropout": 0.0, "attention_dropout": 0.0},
    "max_length": 48,
}


@pytest.fixture(scope="module")
def pretrained():
    """System -> a model that it pretrained."""
    keras.utils.set_random_seed(0)
    masked_lm = MaskedLM(ENCODER, tokenizer=TOKENIZER)
    coco_lm = make_coco_lm.make(
        encoder={**ENCODER, "embedding_size": 16}, tokenizer=TOKENIZER
    )
    assert isinstance(coco_lm, CocoLM)
    return {"masked_lm": scrambled(masked_lm), "coco_lm": scrambled(coco_lm)}


@pytest.fixture(scope="module")
def presets(pretrained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets")
    for name, model in pretrained.items():
        model.save_to_preset(folder / name)
    return {name: folder / name for name in pretrained}


def texts_of(model, features):
    return [
        " ".join(model.tokenizer.tokens(f.inputs["token_ids"].tolist()))
        for f in features
    ]


def test_a_template_is_filled_and_texts_are_cut():
    template = Template("{second} ? [MASK] , {first} .", TOKENIZER)
    (texts,) = template.encode([("the cat sat on the mat", "a dog")])
    ids = template.fill(texts, 9, TOKENIZER.mask_id)
    shown = " ".join(TOKENIZER.tokens(ids))
    assert shown == "a dog [UNK] [MASK] , the cat sat ."
    assert len(template.fill(texts, 2, 4)) == 4  # what is fixed is not cut


def test_a_word_after_a_space_may_be_another_token():
    tokenizer = ByteBPETokenizer.train(["it was great . great"] * 9, 300)
    template = Template("{first} It was [MASK] .", tokenizer)
    assert tokenizer.tokens([template.word_id("great")]) == ["\u0120great"]
    tight = Template("{first} ([MASK])", tokenizer)
    assert tight.spaces["[MASK]"] == ""


@pytest.mark.parametrize(
    "text",
    ["it was [MASK]", "{first} was", "{first} {first} [MASK]", "{second} [MASK]"],
)
def test_a_template_without_its_slots_is_refused(text):
    with pytest.raises(ValueError, match="`template` must have {first} and"):
        Template(text, TOKENIZER)


@pytest.mark.parametrize("system", ["masked_lm", "coco_lm"])
def test_probabilities_are_the_language_model_s(pretrained, presets, system):
    start = pretrained[system]
    model = PromptClassifier.from_preset(presets[system], **PROMPT)
    texts = ["the cat sat", "a dog ran under the rug"]
    # By hand: the pretrained head's logits at the mask, of the two words alone.
    words = "[CLS] the cat sat , it was [MASK] . [SEP]".split()
    ids = np.array([[TOKENIZER.vocabulary.index(w) for w in words]])
    hidden = start.encoder({"token_ids": ids})
    logits = np.array(start.vocabulary_head(hidden, np.array([[7]])))[0, 0]
    meow, woof = (TOKENIZER.vocabulary.index(w) for w in ("meow", "woof"))
    expected = 1 / (1 + np.exp(logits[woof] - logits[meow]))
    found = model.probabilities(texts)
    assert found.shape == (2, 2) and abs(expected - 0.5) > 1e-3
    np.testing.assert_allclose(found[0], [expected, 1 - expected], rtol=1e-5)
    (target,) = model.features(texts[:1], ["dog"])[0].targets.values()
    losses = model.sequence_losses(
        {"logits": ops.convert_to_tensor(logits[None, [meow, woof]])},
        {"label": np.array([target])},
    )
    np.testing.assert_allclose(np.array(losses), -np.log(1 - expected), rtol=1e-5)


def test_demonstrations_are_of_each_class_and_never_the_example_itself(presets):
    examples = ["the cat", "a cat sat", "the dog", "a dog ran"]
    labels = ["cat", "cat", "dog", "dog"]
    shown = list(zip(examples, labels, strict=True))
    model = PromptClassifier.from_preset(
        presets["masked_lm"], **PROMPT, demonstrations=shown, num_contexts=3
    )
    features = model.features(examples, labels)
    assert [f.example for f in features] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    for feature, text in zip(features, texts_of(model, features), strict=True):
        own, *others, empty = text.removeprefix("[CLS] ").split("[SEP]")
        assert empty == "" and len(others) == 2 and "[MASK]" in own
        assert not any("[MASK]" in other for other in others)
        assert {"meow", "woof"} == {w for o in others for w in o.split()} & {
            "meow",
            "woof",
        }
        assert f"{examples[feature.example]} ," not in " ".join(others)
        place = feature.inputs["mask_place"].argmax()
        assert feature.inputs["token_ids"][place] == TOKENIZER.mask_id
        assert len(feature.inputs["token_ids"]) <= model.max_length
    # Prediction averages over the contexts, and may show any of the examples.
    features = model.features(examples[:1])
    outputs = model.outputs(features)
    each = [np.exp(o["logits"]) / np.exp(o["logits"]).sum() for o in outputs]
    found = model.probabilities(examples[:1])
    np.testing.assert_allclose(found[0], np.mean(each, axis=0), rtol=1e-5)
    assert np.ptp([p[0] for p in each]) > 1e-4


def test_draws_are_uniform_over_the_others():
    rng = np.random.default_rng(0)
    sets = demonstration_sets(["x", "x", "x", "y"], 3000, 0, rng)
    firsts = [s[0] in (1, 2) for s in sets]
    assert 0.45 < np.mean(firsts) < 0.55  # the order of the classes
    ones = [1 in s for s in sets]
    assert 0.45 < np.mean(ones) < 0.55
    assert all(0 not in s and 3 in s for s in sets)
    assert demonstration_sets([], 2, None, rng) == [[], []]


@pytest.mark.usefixtures("graphs")
def test_it_learns_and_comes_back_from_its_preset(presets, tmp_path):
    train, dev = cats_and_dogs(128), cats_and_dogs(40, seed=1)
    model = PromptClassifier.from_preset(presets["masked_lm"], dropout=0.0, **PROMPT)
    model.compile(keras.optimizers.Adam(5e-3))
    batches = model.batches(model.features(train.examples, train.labels), 8, seed=0)
    model.fit(batches, epochs=12, verbose=0, shuffle=False)
    found = model.predictions(dev.examples)
    assert np.mean([a == b for a, b in zip(found, dev.labels, strict=True)]) > 0.8
    model.save_to_preset(tmp_path / "trained")
    shown = [*zip(train.examples, train.labels, strict=True)][:6]
    model = PromptClassifier.from_preset(
        tmp_path / "trained", demonstrations=shown, num_contexts=2, **PROMPT
    )
    model.save_to_preset(tmp_path / "preset")
    again = load_preset(tmp_path / "preset")
    np.testing.assert_allclose(
        again.probabilities(dev.examples), model.probabilities(dev.examples), rtol=1e-5
    )
    # Another prompt keeps the weights; a new head keeps the encoder.
    other = {**PROMPT, "template": "[MASK] : {first}"}
    other = PromptClassifier.from_preset(tmp_path / "preset", **other)
    assert other.demonstrations == [] and other.pretrained_by == model.pretrained_by
    np.testing.assert_array_equal(other.head.bias, model.head.bias)
    TextClassifier.from_preset(tmp_path / "preset", labels=["a", "b"])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"label_words": {"cat": "funny", "dog": "woof"}}, "'fun', '##ny'.*one of its"),
        ({"label_words": {"cat": "bird", "dog": "woof"}}, "UNK.* for 'bird'"),
        ({"label_words": {"cat": "meow", "dog": "meow"}}, "a word of its own"),
        ({"demonstrations": [("a bird", "bird")]}, "has the label 'bird'"),
        ({"num_contexts": 2}, "`num_contexts` must be .* 1 without"),
    ],
)
def test_what_cannot_be_is_refused(presets, changes, message):
    with pytest.raises(ValueError, match=message):
        PromptClassifier.from_preset(presets["masked_lm"], **PROMPT | changes)


def test_examples_and_labels_must_fit(presets):
    model = PromptClassifier.from_preset(presets["masked_lm"], **PROMPT)
    with pytest.raises(
        ValueError, match=r"takes 1 texts; `examples\[1\]` is \('a', 'b"
    ):
        model.features(["a", ("a", "b")])
    with pytest.raises(ValueError, match="Unknown label 'bird'"):
        model.features(["a"], ["bird"])


def test_a_detector_has_no_words(preset):
    with pytest.raises(ValueError, match="this Electra .* MaskedLM or a CocoLM"):
        PromptClassifier.from_preset(preset, **PROMPT)
