"""Checkpoints of TensorFlow 1, with the names of Google's code."""

import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt import models
from keras_corrupt.models import Electra, Electric, MaskedLM
from keras_corrupt.presets.named_variables import named_weights
from tests.convert.conftest import assert_same_weights, scrambled

ENCODER = {
    **{"vocabulary_size": 110, "num_layers": 2, "hidden_size": 128, "num_heads": 2},
    **{"intermediate_size": 32, "embedding_size": 12, "max_length": 16},
}
GENERATOR = {"num_layers": 3, "hidden_size": 64, "num_heads": 1}

#: Our names -> theirs, written down from their code, apart from the package's tables.
EMBEDDINGS = [
    ("token/embeddings", "word_embeddings"),
    ("position/embeddings", "position_embeddings"),
    ("segment/embeddings", "token_type_embeddings"),
    ("norm/", "LayerNorm/"),
]
LAYER = [
    ("attention/output_projection/", "attention/output/dense/"),
    ("attention/query/", "attention/self/query/"),
    ("attention/key/", "attention/self/key/"),
    ("attention/value/", "attention/self/value/"),
    ("attention_norm/", "attention/output/LayerNorm/"),
    ("intermediate/", "intermediate/dense/"),
    ("feedforward_output/", "output/dense/"),
    ("feedforward_norm/", "output/LayerNorm/"),
]


def theirs(name, root, embeddings):
    """Translates the name of an encoder's weight."""
    for ours, found in EMBEDDINGS:
        name = name.replace(f"embeddings/{ours}", f"{embeddings}/embeddings/{found}")
    for ours, found in LAYER if name.startswith("layers_") else ():
        if f"/{ours}" in name:
            name = name.replace(f"/{ours}", f"/{found}")
            break
    name = name.replace("embedding_projection", f"{root}/embeddings_project")
    return name.replace("layers_", f"{root}/encoder/layer_")


def arrays_of(encoder, root, embeddings=None):
    return {
        theirs(name, root, embeddings or root): np.array(variable)
        for name, variable in named_weights(encoder).items()
    }


def head(layer, **names):
    found = {n: np.array(v) for n, v in named_weights(layer).items()}
    return {
        theirs + n.removeprefix(ours): array
        for ours, theirs in names.items()
        for n, array in found.items()
        if n.startswith(ours)
    }


def save(folder, arrays):
    extra = {"global_step": np.int64(7)}
    extra |= {f"{name}/adam_m": array for name, array in arrays.items()}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, array in {**arrays, **extra}.items():
            tf.compat.v1.get_variable(name, initializer=array)
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, str(folder / "model.ckpt-7"))
    return folder


SOFTMAX = {"transform": "dense", "norm": "LayerNorm"}


def softmax(layer, root, bias):
    names = {ours: f"{root}/{found}" for ours, found in SOFTMAX.items()}
    return head(layer, **names, bias=bias)


def discriminator(model):
    names = {"transform": "dense", "classifier": "dense_1"}
    return head(
        model.discriminator.head,
        **{ours: f"discriminator_predictions/{n}" for ours, n in names.items()},
    )


@pytest.mark.parametrize("tied", ["all", "none"])
def test_electra(tied, tmp_path):
    model = scrambled(Electra(ENCODER, GENERATOR, tied_embeddings=tied))
    own = "generator" if tied == "none" else "electra"
    arrays = {
        **arrays_of(model.discriminator.encoder, "electra"),
        **arrays_of(model.generator.encoder, "generator", own),
        **discriminator(model),
        **softmax(
            model.generator.head,
            "generator_predictions",
            "generator_predictions/output_bias",
        ),
    }
    back = models.load_preset(save(tmp_path, arrays))
    assert back.tied_embeddings == tied
    assert_same_weights(model.discriminator, back.discriminator)
    assert_same_weights(model.generator, back.generator)
    sizes = model.get_config() | {"name": 0}
    assert sizes == back.get_config() | {"name": 0}


def test_a_discriminator_alone(tmp_path):
    model = scrambled(Electra(ENCODER, GENERATOR))
    arrays = arrays_of(model.discriminator.encoder, "electra") | discriminator(model)
    with pytest.warns(UserWarning, match="has no generator"):
        back = Electra.from_preset(save(tmp_path, arrays) / "model.ckpt-7")
    assert_same_weights(model.discriminator, back.discriminator)
    del arrays["electra/encoder/layer_1/output/dense/bias"]
    with pytest.raises(ValueError, match=r"layer_1/output/dense/bias.* is missing"):
        (tmp_path / "other").mkdir()
        Electra.from_preset(save(tmp_path / "other", arrays))


def test_bert(tmp_path):
    model = scrambled(MaskedLM({**ENCODER, "embedding_size": 128}))
    arrays = {
        **arrays_of(model.encoder, "bert"),
        **softmax(
            model.network.head,
            "cls/predictions/transform",
            "cls/predictions/output_bias",
        ),
        "bert/pooler/dense/bias": np.ones(128, "float32"),
    }
    odd = {**ENCODER, "hidden_size": 96, "num_heads": 2, "embedding_size": 96}
    odd = arrays_of(MaskedLM(odd).encoder, "bert")
    (tmp_path / "odd").mkdir()
    with pytest.raises(ValueError, match="a width of 96 has no 1.5 heads. Say how"):
        MaskedLM.from_preset(save(tmp_path / "odd", odd))
    (tmp_path / "bert_config.json").write_text('{"num_attention_heads": 4}')
    back = models.load_preset(save(tmp_path, arrays))
    assert back.encoder.num_heads == 4
    assert_same_weights(model.network, back.network)


def test_electric(tmp_path):
    model = scrambled(Electric(ENCODER, GENERATOR))
    towers = {
        "generator_ltr": model.generator.left_to_right,
        "generator_rtl": model.generator.right_to_left,
    }
    arrays = arrays_of(model.discriminator.encoder, "electra")
    ours, shared = model.generator.left_to_right, model.discriminator.encoder
    for part in ("segment", "norm"):  # which are one there, as are the others
        weights = getattr(shared.embeddings, part).get_weights()
        getattr(ours.embeddings, part).set_weights(weights)
    for root, tower in towers.items():
        arrays |= arrays_of(tower, root, "electra")
    arrays |= softmax(
        model.generator.head, "cloze_predictions", "cloze_predictions/output_bias"
    )
    with pytest.warns(UserWarning, match="energies have a hidden layer"):
        back = models.load_preset(save(tmp_path, arrays))
    assert type(back) is Electric
    assert_same_weights(model.generator, back.generator)
    assert_same_weights(model.discriminator.encoder, back.discriminator.encoder)
