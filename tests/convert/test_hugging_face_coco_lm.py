"""COCO-LM's port, against its forward pass in NumPy."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy.special import erf

from keras_corrupt import models
from keras_corrupt.convert import hugging_face_coco_lm
from keras_corrupt.convert.weights import Weights
from keras_corrupt.models import CocoLM

CONFIG = {
    **{"model_type": "cocolm", "vocab_size": 50, "hidden_size": 16},
    **{"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24},
    **{"max_position_embeddings": 40, "type_vocab_size": 0, "layer_norm_eps": 1e-5},
    **{"rel_pos_bins": 16, "max_rel_pos": 24, "hidden_act": "gelu"},
}


def shapes_of(config, positions=40):
    """Returns name -> shape of the weights of a model like theirs."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], width),
        "embeddings.position_embeddings.weight": (positions, width),
        "relative_attention_bias.weight": (
            config["rel_pos_bins"],
            config["num_attention_heads"],
        ),
        "scl_head.dense.weight": (width, width),
    }
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        for name, shape in {
            "attention.self_attn.in_proj": (3 * width, width),
            "attention.self_attn.out_proj": (width, width),
            "intermediate.dense": (inner, width),
            "output.dense": (width, inner),
        }.items():
            shapes |= {f"{layer}{name}.weight": shape, f"{layer}{name}.bias": shape[:1]}
    norms = ["embeddings"]
    for i in range(config["num_hidden_layers"]):
        norms += [f"encoder.layer.{i}.attention", f"encoder.layer.{i}.output"]
    for name in norms:
        shapes[f"{name}.LayerNorm.weight"] = shapes[f"{name}.LayerNorm.bias"] = (width,)
    return shapes


def port(folder, prefix="cocolm.", **changes):
    """Writes a directory like theirs; returns its config and its arrays."""
    config, rng = {**CONFIG, **changes}, np.random.default_rng(0)
    arrays = {
        name: rng.normal(scale=0.4, size=shape).astype("float16")
        for name, shape in shapes_of(config).items()
    }
    # Small, so that the norm's epsilon counts.
    for name in ("word", "position"):
        arrays[f"embeddings.{name}_embeddings.weight"] *= np.float16(0.02)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file({prefix + n: a for n, a in arrays.items()}, folder / "model.safetensors")
    return config, {n: a.astype("float64") for n, a in arrays.items()}


def forward(config, arrays, ids, mask):
    """Their last layer's output."""
    heads, length = config["num_attention_heads"], ids.shape[1]

    def linear(x, name):
        return x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return x * arrays[f"{name}.weight"] + arrays[f"{name}.bias"]

    def signed_bucket(distance):
        half = config["rel_pos_bins"] // 2
        exact, size = half // 2, abs(distance)
        if size >= exact:
            grown = math.log(size / exact)
            grown /= math.log((config["max_rel_pos"] - 1) / exact)
            size = min(exact + math.ceil(grown * (half - 1 - exact)), half - 1)
        return int(math.copysign(size, distance))

    every = range(config["max_position_embeddings"])
    least = min(signed_bucket(-far) for far in every)
    rows = [
        [signed_bucket(key - query) - least for key in range(length)]
        for query in range(length)
    ]
    bias = arrays["relative_attention_bias.weight"][np.array(rows)].transpose(2, 0, 1)
    x = arrays["embeddings.word_embeddings.weight"][ids]
    x = x + arrays["embeddings.position_embeddings.weight"][:length]
    x = norm(x, "embeddings.LayerNorm") * mask[..., None]
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        joined = linear(x, f"{layer}attention.self_attn.in_proj")
        query, key, value = (
            part.reshape(*ids.shape, heads, -1).swapaxes(1, 2)
            for part in np.split(joined, 3, axis=-1)
        )
        logits = query @ key.swapaxes(2, 3) * query.shape[-1] ** -0.5 + bias
        logits = np.where(mask[:, None, None] > 0, logits, -np.inf)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        context = weights / weights.sum(-1, keepdims=True) @ value
        context = context.swapaxes(1, 2).reshape(x.shape)
        attended = linear(context, f"{layer}attention.self_attn.out_proj")
        x = norm(x + attended, f"{layer}attention.LayerNorm")
        inner = linear(x, f"{layer}intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
        outer = linear(inner, f"{layer}output.dense")
        x = norm(outer + x, f"{layer}output.LayerNorm")
    return x


def load(folder):
    with pytest.warns(
        UserWarning, match="no tokenizer: give it token ids|has no generator"
    ):
        return models.load_preset(folder)


@pytest.mark.parametrize(
    ("prefix", "changes"),
    [
        ("cocolm.", {}),
        # Fewer positions than buckets reach, so that theirs begin at another row.
        ("", {"max_position_embeddings": 12, "rel_pos_bins": 32, "max_rel_pos": 128}),
    ],
)
def test_the_encoder_computes_what_theirs_does(prefix, changes, tmp_path):
    config, arrays = port(tmp_path / "theirs", prefix, **changes)
    model = load(tmp_path / "theirs")
    assert type(model) is CocoLM
    assert model.tokenizer is None
    rng = np.random.default_rng(1)
    length = config["max_position_embeddings"]
    ids = rng.integers(4, 50, (2, length)).astype("int32")
    mask = np.ones_like(ids)
    mask[1, length // 2 :] = 0
    # They have no segments, so that those given make no difference.
    inputs = {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": mask}
    found = np.array(model.encoder(inputs))
    expected = forward(config, arrays, ids, mask)
    np.testing.assert_allclose(found[mask > 0], expected[mask > 0], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("layers", "hidden"), [(12, 768), (24, 1024)])
def test_the_released_sizes_have_a_place(layers, hidden, without_values):
    config = CONFIG | {
        **{"vocab_size": 64001, "num_hidden_layers": layers, "hidden_size": hidden},
        **{"num_attention_heads": hidden // 64, "intermediate_size": 4 * hidden},
        **{"max_position_embeddings": 512, "rel_pos_bins": 32, "max_rel_pos": 128},
    }
    shapes = {f"cocolm.{n}": s for n, s in shapes_of(config, positions=512).items()}
    with pytest.warns(UserWarning, match="heads are new"):
        model, lacks = hugging_face_coco_lm.read(
            Path("theirs"), config, Weights("theirs", shapes, None)
        )
    assert lacks == ("generator",)
    assert model.encoder.num_layers == layers
    assert without_values["all"] - without_values["taken"] == {
        "cocolm.scl_head.dense.weight"
    }


def test_what_the_encoder_cannot_hold_is_refused(tmp_path):
    for i, (changes, reason) in enumerate(
        [
            ({"layer_norm_type": "pre"}, "layer_norm_type is 'pre'"),
            ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
            ({"max_rel_pos": 5}, "max_distance.*got 5"),
            ({"layer_norm_eps": 0}, "layer_norm_epsilon.*got 0"),
            ({"max_position_embeddings": 60}, "larger than the weights"),
        ]
    ):
        port(tmp_path / str(i), **changes)
        with pytest.raises(ValueError, match=reason):
            models.load_preset(tmp_path / str(i))


@pytest.mark.parametrize(
    ("name", "shape", "reason"),
    [
        ("output.more", (3,), "layer.1.output.more is not known"),
        ("attention.self_attn.in_proj.weight", (49, 16), "query.weight, .*is missing"),
        ("attention.self_attn.in_proj.bias", (), "query.bias, .*is missing"),
        ("attention.self_attn.in_proj.bias", (51,), r"query.bias is \[17\], not"),
    ],
)
def test_wrong_weights_are_named(name, shape, reason, tmp_path):
    _, arrays = port(tmp_path / "theirs")
    arrays[f"encoder.layer.1.{name}"] = np.zeros(shape)
    save_file(arrays, tmp_path / "theirs" / "model.safetensors")
    with pytest.raises(ValueError, match=reason):
        models.load_preset(tmp_path / "theirs")
