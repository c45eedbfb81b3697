"""ModernBERT's parts, against NumPy and hand counts."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.encoders.rotary import RotaryPositions
from keras_corrupt.presets.named_variables import named_weights
from tests.conftest import MODERN, SIZES, gradients_of, make_inputs
from tests.encoders.conftest import ENCODER, LENGTH

CONFIG = SIZES["discriminator"] | {"num_layers": 4}
#: Each option alone, and all of them.
OPTIONS = {
    "rotary": {"positions": "rotary"},
    "pre": {"norm": "pre"},
    "geglu": {"feed_forward": "geglu", "approximate_gelu": True},
    "swiglu": {"feed_forward": "swiglu"},
    "no bias": {"use_bias": False},
    "window": {"local_window": 4, "global_every": 2},
    "no segments": {"num_segments": 0},
    "all": MODERN,
    "left to right": MODERN | {"attention": "left_to_right"},
}


# === Against NumPy ===


def turned(x, theta):
    """Rotary positions as products of complex numbers, of `[..., length, size]`."""
    length, size = x.shape[-2:]
    points = x[..., : size // 2] + 1j * x[..., size // 2 :]
    rates = theta ** (-2 * np.arange(size // 2) / size)
    points = points * np.exp(1j * np.arange(length)[:, None] * rates)
    return np.concatenate([points.real, points.imag], axis=-1)


class Reference:
    """An encoder without dropout in NumPy, float64, of an encoder's weights."""

    def __init__(self, encoder):
        self.options = encoder.architecture
        weights = named_weights(encoder).items()
        self.weights = {n: np.array(v, "float64") for n, v in weights}

    def dense(self, name, x):
        return x @ self.weights[f"{name}/kernel"] + self.weights.get(f"{name}/bias", 0)

    def norm(self, name, x):
        if f"{name}/gamma" not in self.weights:
            return x
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)
        offset = self.weights.get(f"{name}/beta", 0)
        return x * self.weights[f"{name}/gamma"] + offset

    def attention(self, name, x, mask, is_local):
        options, heads = self.options, self.options["num_heads"]
        query, key, value = (
            self.dense(f"{name}/{part}", x)
            .reshape(*x.shape[:2], heads, -1)
            .swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        if options["positions"] == "rotary":
            theta = options["local_rotary_theta" if is_local else "rotary_theta"]
            query, key = turned(query, theta), turned(key, theta)
        if is_local:
            place = np.arange(x.shape[1])
            far = abs(place[:, None] - place) > options["local_window"] // 2
            mask = mask & ~far
        logits = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
        weights = np.where(mask[:, None], np.exp(logits), 1e-30)
        weights /= weights.sum(-1, keepdims=True)
        context = (weights @ value).swapaxes(1, 2).reshape(x.shape)
        return self.dense(f"{name}/output_projection", context)

    def feed_forward(self, name, x):
        inner, kind = (
            self.dense(f"{name}/intermediate", x),
            self.options["feed_forward"],
        )
        if kind == "gelu":
            inner = self.gelu(inner)
        else:
            content, gate = np.split(inner, 2, axis=-1)
            silu = content / (1 + np.exp(-content))
            inner = (silu if kind == "swiglu" else self.gelu(content)) * gate
        return self.dense(f"{name}/feedforward_output", inner)

    def gelu(self, x):
        if self.options["approximate_gelu"]:
            inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
            return x / 2 * (1 + np.tanh(inner))
        return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))

    def __call__(self, inputs):
        options, weights = self.options, self.weights
        ids, real = inputs["token_ids"], inputs["padding_mask"] == 1
        x = weights["embeddings/token/embeddings"][ids]
        if options["positions"] == "learned":
            x = x + weights["embeddings/position/embeddings"][: ids.shape[1]]
        if options["num_segments"]:
            x = x + weights["embeddings/segment/embeddings"][inputs["segment_ids"]]
        x = self.dense("embedding_projection", self.norm("embeddings/norm", x))
        place = np.arange(ids.shape[1])
        mask = np.broadcast_to(real[:, None], (len(ids), len(place), len(place)))
        if options["attention"] == "left_to_right":
            mask = mask & (place <= place[:, None])
        for i in range(options["num_layers"]):
            layer, window = f"layers_{i}", options["local_window"]
            is_local = window is not None and i % options["global_every"] > 0

            def attend(x, name=f"{layer}/attention", is_local=is_local):
                return self.attention(name, x, mask, is_local)

            def feed(x, name=layer):
                return self.feed_forward(name, x)

            for sublayer, norm in (
                (attend, f"{layer}/attention_norm"),
                (feed, f"{layer}/feedforward_norm"),
            ):
                if options["norm"] == "pre":
                    x = x + sublayer(self.norm(norm, x))
                else:
                    x = self.norm(norm, x + sublayer(x))
        return self.norm("final_norm", x)


def with_random_weights(encoder):
    """Moves all weights, so that biases and norms matter, too."""
    rng = np.random.default_rng(1)
    for weight in encoder.weights:
        weight.assign(weight + rng.normal(scale=0.3, size=weight.shape))
    return encoder


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_encoders_equal_numpy(options, inputs):
    encoder = with_random_weights(TransformerEncoder(**CONFIG | options))
    real = inputs["padding_mask"] == 1
    ours, expected = np.array(encoder(inputs))[real], Reference(encoder)(inputs)[real]
    assert abs(expected).max() > 1
    np.testing.assert_allclose(ours, expected, atol=2e-5, rtol=1e-4)


def test_rotary_products_depend_on_distances_alone():
    rotary = RotaryPositions(size=8, theta=100.0)
    rng = np.random.default_rng(0)
    query, key = (
        np.array(rotary(np.tile(rng.normal(size=8), (1, 30, 1, 1)).astype("float32")))
        for _ in range(2)
    )
    products = query[0, :, 0] @ key[0, :, 0].T  # the same vectors at all places
    for distance in (-20, -3, 0, 1, 12):
        diagonal = np.diagonal(products, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-5)
    assert np.ptp(products) > 0.5


def test_rotary_positions_are_exact_in_bfloat16():
    rotary = RotaryPositions(size=8, theta=10_000.0, dtype="mixed_bfloat16")
    x = ops.ones((1, 700, 1, 8), "bfloat16")
    ours = np.array(ops.cast(rotary(x), "float32"))[0, :, 0]
    np.testing.assert_allclose(ours, turned(np.ones((700, 8)), 10_000.0), atol=0.01)


def test_tokens_beyond_the_window_change_nothing_in_local_layers(inputs):
    encoder = with_random_weights(TransformerEncoder(**CONFIG | MODERN))
    assert encoder.local_window == 4
    x = np.random.default_rng(2).normal(size=(1, 20, 16)).astype("float32")
    changed = x.copy()
    changed[:, 3, ::2] += 1  # not all numbers alike: norms would not see that
    mask = encoder.attention_mask({"padding_mask": np.ones((1, 20), "int32")})

    def run(x, layers):
        for layer in layers:
            x = layer(x, mask)
        return np.array(x)[0]

    local = encoder.layers_[1:3]  # global are the layers 0 and 3
    moved = abs(run(x, local) - run(changed, local)).max(-1) > 1e-6
    assert np.flatnonzero(moved).tolist() == [*range(8)]  # 2 to either side, twice
    assert (run(x, encoder.layers_[:1]) != run(changed, encoder.layers_[:1])).all()


# === What there is ===


def test_absent_parts_have_no_variables():
    names = {*named_weights(TransformerEncoder(**CONFIG | MODERN))}
    assert not [n for n in names if n.endswith(("bias", "beta"))]
    assert not [n for n in names if "position" in n or "segment" in n]
    assert "layers_0/attention_norm/gamma" not in names
    assert {"layers_1/attention_norm/gamma", "final_norm/gamma"} < names
    modern = TransformerEncoder(**CONFIG | MODERN)
    hidden, inner, size = 16, 32, 12
    layer = 4 * hidden**2 + 3 * hidden * inner + 2 * hidden
    embeddings = 50 * size + size + size * hidden
    # The first layer lacks a norm, the last one has one more.
    assert modern.count_params() == embeddings + 4 * layer


def test_segment_ids_play_no_part_without_a_table(inputs):
    encoder = TransformerEncoder(**CONFIG | MODERN)
    other = inputs | {"segment_ids": inputs["segment_ids"] + 7}
    ours, theirs = (encoder(encoder.input_limits.checked(x)) for x in (inputs, other))
    np.testing.assert_array_equal(np.array(ours), np.array(theirs))


@pytest.mark.parametrize("remat", ["attention", "layer"])
def test_gradients_are_the_same_with_remat(remat, inputs):
    options = CONFIG | MODERN | {"dropout": 0.0, "attention_dropout": 0.0}
    encoder = TransformerEncoder(**options)
    other = TransformerEncoder(**options, remat=remat)
    other.set_weights(encoder.get_weights())
    found = [
        gradients_of(lambda e=e: ops.sum(ops.sin(e(inputs, training=True))), e)
        for e in (encoder, other)
    ]
    for ours, theirs in zip(*(gradients.values() for gradients in found), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4, rtol=1e-4)


def test_parts_that_are_absent_are_not_tied():
    learned, rotary = (
        TransformerEncoder(**CONFIG),
        TransformerEncoder(**CONFIG | {"positions": "rotary"}),
    )
    parts = "token", "position"
    other = TransformerEncoder(**CONFIG, tied_to=rotary, tied_parts=parts)
    assert other.embeddings.token is rotary.embeddings.token
    assert other.embeddings.position is not None
    sizes = CONFIG | {"positions": "rotary"}
    other = TransformerEncoder(**sizes, tied_to=learned, tied_parts=parts)
    assert other.embeddings.position is None


@pytest.mark.parametrize("tied_layers", [3, 4])
def test_the_final_norm_belongs_to_the_top_layer(tied_layers):
    first = TransformerEncoder(**CONFIG | MODERN)
    second = TransformerEncoder(
        **CONFIG | MODERN, tied_to=first, tied_layers=tied_layers
    )
    assert (second.final_norm is first.final_norm) == (tied_layers == 4)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"positions": "sinusoids"}, r"`positions` must be one of.*'sinusoids'"),
        ({"norm": "middle"}, "`norm` must be one of .*'post', 'pre'.*'middle'"),
        ({"feed_forward": ["geglu"]}, r"`feed_forward` must be one of.*\['geglu'\]"),
        ({"use_bias": "no"}, "`use_bias` must be one of.*'no'"),
        ({"local_window": 5}, "`local_window`.*even number.*got 5"),
        ({"local_window": 0}, "`local_window`.*got 0"),
        ({"local_window": "4"}, "`local_window`.*got '4'"),
        ({"global_every": 0}, "`global_every`.*got 0"),
        ({"rotary_theta": "big"}, "`rotary_theta`.*got 'big'"),
        ({"local_rotary_theta": 0}, "`local_rotary_theta`.*got 0"),
        (
            {"positions": "rotary", "hidden_size": 6, "num_heads": 2},
            "width of a head.*even.*num_heads=2, hidden_size=6",
        ),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        TransformerEncoder(**CONFIG | options)


# === Costs, by hand ===


def test_flops_by_hand():
    bert = TransformerEncoder(**ENCODER)
    hidden, inner, size, layers = 32, 80, 16, 2
    extra = {
        # Two products and a sum for each number of queries and keys; in the embeddings
        # no look-up of LENGTH rows, and one addition less.
        "rotary": LENGTH * (layers * 3 * 2 * hidden - size * (2 * LENGTH + 1)),
        "pre": 0,  # one norm less in the first layer, one more at the end
        # One more product with its bias, and times the gate; silu has 4 operations less
        # than gelu.
        "geglu": LENGTH * layers * inner * (2 * hidden + 1 + 1),
        "swiglu": LENGTH * layers * inner * (2 * hidden + 1 + 1 - 4),
        # Biases of four projections, the inner and the outer layer, offsets of norms;
        # those of the embeddings' norm and projection.
        "no bias": -LENGTH * (layers * (7 * hidden + inner) + size + hidden),
        "window": 0,
        "no segments": -LENGTH * size * (2 * 2 + 1),
    }
    for name, flops in extra.items():
        options = {k: v for k, v in OPTIONS[name].items() if k != "approximate_gelu"}
        other = TransformerEncoder(**ENCODER | options)
        assert other.flops(LENGTH) - bert.flops(LENGTH) == flops, name


def test_activation_bytes_by_hand():
    sizes = 3, LENGTH, 2
    bert = TransformerEncoder(**ENCODER).activation_bytes(*sizes)
    layer = 2 * 3 * LENGTH * ((2 * 2 + 8) * 32 + 2 * 80)  # What no kernel spares.
    extra = {
        "rotary": 2 * layer - 4 * 3 * LENGTH * 16,  # no look-up of positions
        "pre": 2 * layer - 2 * 3 * LENGTH * 2 * 32,  # The first layer has one norm.
        # The other half, and the product.
        "geglu": 2 * layer + 2 * 3 * LENGTH * 2 * 2 * 80,
        "swiglu": 2 * layer + 2 * 3 * LENGTH * 2 * 2 * 80,
        "no bias": 2 * layer,
        "window": layer,  # The other layer is global.
        "no segments": -4 * 3 * LENGTH * 16,
    }
    for name, number in extra.items():
        other = TransformerEncoder(**ENCODER | OPTIONS[name])
        assert other.activation_bytes(*sizes) - bert == number, name


def test_quantizing_leaves_gated_layers_as_they_are():
    encoder = TransformerEncoder(**CONFIG | {"feed_forward": "geglu"})
    inputs = make_inputs()
    before = np.array(encoder(inputs))
    with pytest.warns(UserWarning, match="gate"):
        encoder.quantize("int8")
    layer = encoder.layers_[0]
    assert layer.attention.query.quantization_mode == "int8"
    assert not layer.intermediate.quantization_mode
    assert 0 < abs(np.array(encoder(inputs)) - before).max() < 0.2


def test_a_keras_file_keeps_all_options(tmp_path, inputs):
    encoder = TransformerEncoder(**CONFIG | MODERN)
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    assert loaded.architecture == encoder.architecture
    np.testing.assert_array_equal(np.array(encoder(inputs)), np.array(loaded(inputs)))
