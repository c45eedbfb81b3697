"""`.keras` files in a process that has imported the classes, and made no model."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt import (
    cross_view,
    downstream,
    encoders,
    models,
    multitask,
    training,
)
from keras_corrupt.cross_view import (
    CrossViewImageClassifier,
    CrossViewParser,
    CrossViewTagger,
    CrossViewTranslator,
)
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models import (
    AdversarialElectra,
    AllTokensMLM,
    CocoLM,
    Electra,
    ElectraTT,
    Electric,
    MaskedLM,
    ReplaceMLM,
    Teams,
    TwoTower,
    UnigramElectra,
)
from keras_corrupt.multitask import MultiTaskModel  # noqa: F401, registers it
from keras_corrupt.training import (
    SGD,
    AdamW,
    InverseRootDecay,
    LateLinearDecay,
    WarmupLinearDecay,
)
from tests.conftest import SIZES, make_inputs
from tests.integration.load_keras_files import deterministic_part

ROOT = Path(__file__).parents[2]
ENCODER = {**SIZES["discriminator"], "vocabulary_size": 60, "initializer_range": 0.2}


def run(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def functional_model():
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    encoder = TransformerEncoder(**ENCODER, dtype="mixed_bfloat16", name="ours")
    hidden = keras.layers.Dense(3, dtype="float32")(encoder(ids))
    return keras.Model(ids, hidden)


def test_every_kind_of_file_loads_in_a_fresh_process(tmp_path, tokenizer):
    labels = {"labels": ["a", "b"]}
    bilstm = {"encoder": {"hidden_sizes": [4], "projection_size": 3}}
    apart = {"tied_embeddings": "gradient_disentangled"}
    models = {
        "adversarial": AdversarialElectra(
            ENCODER, SIZES["generator"], tokenizer=tokenizer, **apart
        ),
        "all_tokens": AllTokensMLM(ENCODER, SIZES["generator"], tokenizer=tokenizer),
        "replace": ReplaceMLM(ENCODER, SIZES["generator"], tokenizer=tokenizer),
        "unigram": UnigramElectra(ENCODER, noise="uniform", tokenizer=tokenizer),
        "electra": Electra(ENCODER, SIZES["generator"], tokenizer=tokenizer),
        "electra_tt": ElectraTT(ENCODER, SIZES["generator"], tokenizer=tokenizer),
        "electric": Electric(ENCODER, SIZES["generator"], tokenizer=tokenizer),
        "masked_lm": MaskedLM(ENCODER, tokenizer=tokenizer),
        "teams": Teams(ENCODER, 2, tokenizer=tokenizer),
        "two_tower": TwoTower(ENCODER, tokenizer=tokenizer),
        "coco_lm": CocoLM(ENCODER | {"embedding_size": 16}, {}, tokenizer=tokenizer),
        "classifier": downstream.TextClassifier(ENCODER, tokenizer, **labels),
        "tagger": downstream.TokenTagger(ENCODER, tokenizer, **labels),
        "extractor": downstream.SpanExtractor(ENCODER, tokenizer),
        "ranker": downstream.CandidateRanker(ENCODER, tokenizer),
        "encoder": TransformerEncoder(**ENCODER),
        "functional": functional_model(),
        "cross_view": CrossViewTagger(["cat"], "act", **bilstm, **labels),
        "cross_view_parser": CrossViewParser(["cat"], "act", **bilstm, **labels),
        "cross_view_translator": CrossViewTranslator(
            ["cat"], "act", decoder={"hidden_sizes": [4]}, **bilstm, **labels
        ),
        "cross_view_images": CrossViewImageClassifier(
            **labels, image_shape=(12, 12, 1), channels=[2] * 9
        ),
    }
    models["electra"].compile(AdamW(WarmupLinearDecay(1e-3, 10, 2)))
    models["cross_view"].compile(SGD(InverseRootDecay(0.5, 0.005), momentum=0.9))
    rate = LateLinearDecay(1e-3, 10, 0.5)
    models["cross_view_images"].compile(keras.optimizers.Adam(rate))
    inputs = dict.fromkeys(models, {"token_ids": make_inputs()["token_ids"]})
    ones = np.ones((2, 3), "int32")
    inputs["cross_view"] = {
        "word_ids": 2 * ones,
        "character_ids": np.stack([2 * ones, 4 * ones], axis=-1),
        "padding_mask": ones,
    }
    inputs["cross_view_parser"] = inputs["cross_view"]
    inputs["cross_view_translator"] = {**inputs["cross_view"], "target_ids": ones}
    images = np.random.default_rng(0).normal(size=(2, 12, 12, 1)).astype("float32")
    inputs["cross_view_images"] = {"images": images, "padding_mask": ones[:, 0]}
    for name, model in models.items():
        np.savez(tmp_path / f"{name}.npz", **inputs[name])
        model.save(tmp_path / f"{name}.keras")
    run(ROOT / "tests/integration/load_keras_files.py", tmp_path)
    for name, model in models.items():
        loaded = np.load(tmp_path / f"{name}.out.npz")
        expected = np.array(deterministic_part(model)(inputs[name]))
        np.testing.assert_allclose(loaded["outputs"], expected, atol=1e-5, err_msg=name)
        known = getattr(getattr(model, "tokenizer", None), "fingerprint", "")
        assert loaded["fingerprint"] == known, name
    assert np.load(tmp_path / "electra.out.npz")["optimizer"] == "AdamW"
    assert np.load(tmp_path / "cross_view.out.npz")["optimizer"] == "SGD"


def test_all_classes_that_a_file_names_can_be_imported():
    rooms = (encoders, models, training, downstream, multitask, cross_view)
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    registered = {
        name: found
        for name, found in keras.saving.get_custom_objects().items()
        if name.startswith("keras_corrupt>") and isinstance(found, type)
    }
    assert registered
    assert [name for name, found in registered.items() if found not in public] == []


def test_a_file_with_anothers_tokenizer_is_refused(tmp_path, tokenizer):
    model = MaskedLM(ENCODER, tokenizer=tokenizer)
    model.save_assets(tmp_path)
    small = MaskedLM({**ENCODER, "vocabulary_size": 20}, mask_id=4, unmaskable_ids=(0,))
    with pytest.raises(ValueError, match="tokenizer has .* tokens, more than"):
        small.load_assets(tmp_path)


def test_a_fine_tuned_model_of_a_config_alone_says_what_it_lacks(tokenizer):
    model = downstream.TextClassifier(ENCODER, tokenizer, labels=["a", "b"])
    copy = type(model).from_config(model.get_config())
    with pytest.raises(AttributeError, match="TextClassifier .* attribute `tokenizer`"):
        copy.predictions(["the cat"])
    copy.tokenizer = tokenizer
    assert len(copy.predictions(["the cat"])) == 1
