"""Other libraries' models at the sizes of the released ones: all names, all shapes.

What is read here is what tests/fixtures/record_released.py made by each library's own
classes; Google's ELECTRA, for which TensorFlow 1 would be needed, has Hugging Face's
shapes by its own names.
"""

import re
from pathlib import Path

import keras_hub
import numpy as np
import pytest

from keras_corrupt.convert import conversion, google_tf1
from keras_corrupt.convert import keras_hub as keras_hub_format
from keras_corrupt.convert.hugging_face import find_weights
from keras_corrupt.convert.options import Options
from keras_corrupt.convert.weights import Weights, assign_weights
from keras_corrupt.models import Electra, MaskedLM, Teams
from tests.fixtures.hollow import restore

ROOT = Path(__file__).parents[1] / "fixtures" / "released"
#: Of Google's models -> layers, hidden size.
SIZES = {"small": (12, 256), "base": (12, 768), "large": (24, 1024)}
#: What there is beside the networks that are here; numbers of layers are `{}`.
POOLER = {f"encoder/layer_with_weights-{{}}/{n}" for n in ("kernel", "bias")}
POOLERS = POOLER | {n.replace("encoder", "model/generator_network") for n in POOLER}
UNUSED = {
    "google_bert": {
        *("bert/pooler/dense/kernel", "bert/pooler/dense/bias"),
        *("cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias"),
    },
    "hugging_face_bert": {
        *("bert.pooler.dense.weight", "bert.pooler.dense.bias"),
        *("cls.seq_relationship.weight", "cls.seq_relationship.bias"),
    },
    "hugging_face_electra": set(),
    "model_garden_bert": POOLER,
    "model_garden_electra": POOLERS
    | {
        f"model/classification/{layer}/{name}"
        for layer in ("dense", "out_proj")
        for name in ("kernel", "bias")
    },
    "model_garden_teams": POOLERS,
}
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
CLASSES = {"bert": MaskedLM, "electra": Electra, "teams": Teams}
RECORDED = sorted(path.stem for path in ROOT.glob("*.npz"))


def test_of_each_kind_there_is_one():
    assert {name.rpartition("_")[0] for name in RECORDED} == UNUSED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_a_checkpoint_of_theirs_is_read(name, without_values, tmp_path, monkeypatch):
    # It would compute with values that are not there.
    monkeypatch.setattr(conversion, "warn_of_one_state", lambda *_: None)
    kind, _, size = name.rpartition("_")
    model, lacks = conversion.read(restore(ROOT / f"{name}.npz", tmp_path), Options())
    assert not lacks
    assert type(model) is CLASSES[kind.rpartition("_")[2]]
    encoder = model.encoder
    assert (encoder.num_layers, encoder.hidden_size) == SIZES[size]
    assert (encoder.vocabulary_size, encoder.max_length) == (30522, 512)
    assert encoder.num_heads == encoder.hidden_size // 64
    left = {
        re.sub(r"weights-\d+", "weights-{}", name).removesuffix(SUFFIX)
        for name in without_values["all"] - without_values["taken"]
    }
    assert left == UNUSED[kind]


def theirs(shapes, is_generator):
    """Gives ELECTRA's weights the names of Google's code."""
    found = {}
    for name, shape in shapes.items():
        name = name.replace(".", "/").replace("encoder/layer/", "encoder/layer_")
        name = name.replace("dense_prediction/", "dense_1/")
        name = name.replace("generator_lm_head/", "generator_predictions/output_")
        norm = "LayerNorm" in name
        name = re.sub("(?<=LayerNorm/)bias", "beta", name)
        name = name.replace("_embeddings/weight", "_embeddings")
        if name.endswith("/weight"):
            shape = shape[::-1]
            name = name.removesuffix("weight") + ("gamma" if norm else "kernel")
        if is_generator and "/embeddings/" not in name:
            name = re.sub("^electra/", "generator/", name)
        found[name] = shape
    return found


@pytest.mark.parametrize("size", ["small", "base", "large"])
def test_googles_electra_is_read(size, without_values, tmp_path, monkeypatch):
    folder = restore(ROOT / f"hugging_face_electra_{size}.npz", tmp_path)
    shapes = {}
    for network in ("generator", ""):
        shapes |= theirs(find_weights(folder / network).shapes, bool(network))
    zeros = Weights("theirs", shapes, lambda n: np.broadcast_to(0.0, shapes[n]))
    monkeypatch.setattr(google_tf1, "prefix_of", lambda path: path)
    monkeypatch.setattr(google_tf1, "checkpoint_weights", lambda prefix: zeros)
    model, lacks = google_tf1.read(tmp_path, Options())
    assert not lacks
    assert (model.encoder.num_layers, model.encoder.hidden_size) == SIZES[size]
    assert model.generator.encoder.hidden_size == 256
    assert without_values["taken"] == shapes.keys()


#: KerasHub's presets -> layers, hidden size, embedding size, vocabulary.
PRESETS = {
    "electra_small_discriminator_uncased_en": (12, 256, 128, 30522),
    "electra_small_generator_uncased_en": (12, 256, 128, 30522),
    "electra_base_discriminator_uncased_en": (12, 768, 768, 30522),
    "electra_base_generator_uncased_en": (12, 256, 768, 30522),
    "electra_large_discriminator_uncased_en": (24, 1024, 1024, 30522),
    "electra_large_generator_uncased_en": (24, 256, 1024, 30522),
    "bert_tiny_en_uncased": (2, 128, 128, 30522),
    "bert_small_en_uncased": (4, 512, 512, 30522),
    "bert_base_en_uncased": (12, 768, 768, 30522),
    "bert_base_en": (12, 768, 768, 28996),
    "bert_large_en_uncased": (24, 1024, 1024, 30522),
}


@pytest.mark.parametrize("name", PRESETS)
def test_keras_hubs_presets_have_a_place(name, without_values):
    layers, hidden, embedding, vocabulary = PRESETS[name]
    cls = "ElectraBackbone" if name.startswith("electra") else "BertBackbone"
    encoder = {
        **{"vocabulary_size": vocabulary, "num_layers": layers, "num_segments": 2},
        **{"hidden_size": hidden, "num_heads": hidden // 64, "max_length": 512},
        **{"intermediate_size": 4 * hidden, "embedding_size": embedding},
    }
    backbone = keras_hub_format.new_backbone(cls, encoder)
    released = getattr(keras_hub.models, cls).presets[name]["metadata"]
    assert backbone.count_params() == released["params"]
    shapes = {v.path: tuple(v.shape) for v in backbone.weights}
    model = MaskedLM(encoder)
    form = keras_hub_format.encoder_format(hidden // 64)
    assign_weights(
        Weights(name, shapes, None), (model.encoder, form), unused="pooled_dense/.*"
    )
    pooler = {"pooled_dense/kernel", "pooled_dense/bias"}
    assert shapes.keys() - without_values["taken"] == pooler
