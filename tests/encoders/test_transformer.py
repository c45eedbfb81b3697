import keras
import keras_hub
import numpy as np
import pytest
from keras import ops

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.encoders.attention import SelfAttention
from tests.conftest import SIZES, gradients_of, make_inputs

CONFIG = SIZES["discriminator"] | {"num_layers": 2}


def copy_from_keras_hub(backbone, encoder):
    """Gives our encoder the weights of KerasHub's."""
    copied = 0

    def copy(source, target):
        nonlocal copied
        for a, b in zip(source.weights, target.weights, strict=True):
            b.assign(ops.reshape(a, b.shape))
            copied += int(np.prod(b.shape))

    theirs = backbone.get_layer
    ours = encoder.embeddings
    copy(theirs("token_embedding"), ours.token)
    copy(theirs("position_embedding"), ours.position)
    copy(theirs("segment_embedding"), ours.segment)
    copy(theirs("embeddings_layer_norm"), ours.norm)
    if encoder.embedding_projection is not None:
        copy(theirs("embeddings_projection"), encoder.embedding_projection)
    for i, layer in enumerate(encoder.layers_):
        block = theirs(f"transformer_layer_{i}")
        attention = block._self_attention_layer
        copy(attention.query_dense, layer.attention.query)
        copy(attention.key_dense, layer.attention.key)
        copy(attention.value_dense, layer.attention.value)
        copy(attention.output_dense, layer.attention.output_projection)
        copy(block._self_attention_layer_norm, layer.attention_norm)
        copy(block._feedforward_intermediate_dense, layer.intermediate)
        copy(block._feedforward_output_dense, layer.feedforward_output)
        copy(block._feedforward_layer_norm, layer.feedforward_norm)
    return copied


@pytest.mark.parametrize("embedding_size", [12, 16])
def test_equals_keras_hub_with_padding(embedding_size, inputs):
    config = {**CONFIG, "embedding_size": embedding_size, "approximate_gelu": True}
    encoder = TransformerEncoder(**config)
    backbone = keras_hub.models.ElectraBackbone(
        vocab_size=50,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        embedding_dim=embedding_size,
        intermediate_dim=32,
        max_sequence_length=24,
    )
    for weight in backbone.weights:  # biases and norms too must matter
        weight.assign(weight + keras.random.normal(weight.shape, stddev=0.3))
    copied = copy_from_keras_hub(backbone, encoder)
    assert copied == encoder.count_params()
    theirs = np.array(backbone(inputs)["sequence_output"])
    ours = np.array(encoder(inputs))
    real = inputs["padding_mask"] == 1
    assert abs(theirs[real]).max() > 1
    np.testing.assert_allclose(ours[real], theirs[real], atol=1e-5)


def test_padding_does_not_reach_real_tokens(inputs):
    encoder = TransformerEncoder(**CONFIG)
    changed = dict(inputs)
    changed["token_ids"] = np.where(inputs["padding_mask"] == 1, inputs["token_ids"], 7)
    real = inputs["padding_mask"] == 1
    a, b = np.array(encoder(inputs)), np.array(encoder(changed))
    np.testing.assert_allclose(a[real], b[real], atol=1e-6)


def test_attention_with_dropout_agrees_with_the_fused_op():
    layer = SelfAttention(16, 2, dropout=1e-7)
    x = np.random.default_rng(0).normal(size=(3, 10, 16)).astype("float32")
    mask = (np.arange(10) < 7)[None, None, None, :]
    bias = np.random.default_rng(1).normal(size=(1, 2, 10, 10)).astype("float32")
    fused = layer(x, mask, bias, training=False)
    unfused = layer(x, mask, bias, training=True)
    np.testing.assert_allclose(np.array(fused), np.array(unfused), atol=1e-5)


def test_dropout_is_active_in_training_only(inputs):
    encoder = TransformerEncoder(**CONFIG)
    still = [np.array(encoder(inputs)) for _ in range(2)]
    moving = [np.array(encoder(inputs, training=True)) for _ in range(2)]
    np.testing.assert_array_equal(*still)
    assert abs(moving[0] - moving[1]).max() > 0.01


def test_mixed_precision_keeps_weights_in_float32(inputs):
    encoder = TransformerEncoder(**CONFIG, dtype="mixed_bfloat16")
    exact = TransformerEncoder(**CONFIG)
    exact.set_weights(encoder.get_weights())
    assert {v.dtype for v in encoder.trainable_variables} == {"float32"}
    out = encoder(inputs)
    assert keras.backend.standardize_dtype(out.dtype) == "bfloat16"
    real = inputs["padding_mask"] == 1
    difference = np.array(ops.cast(out, "float32")) - np.array(exact(inputs))
    assert abs(difference[real]).max() < 0.1


def test_bias_gradient_adds_up_thousands_of_terms_in_bfloat16():
    inputs = make_inputs(batch=256)
    encoder = TransformerEncoder(**CONFIG, dtype="mixed_bfloat16")
    found = gradients_of(lambda: ops.sum(encoder.embed(inputs)), encoder)
    tokens = inputs["token_ids"].size  # 5,120; in bfloat16, 256 + 1 is 256
    np.testing.assert_allclose(found[id(encoder.embedding_projection.bias)], tokens)


def test_tied_parts_are_the_same_variables():
    first = TransformerEncoder(**CONFIG)
    second = TransformerEncoder(**CONFIG, tied_to=first, tied_parts=("token",))
    assert second.embeddings.token is first.embeddings.token
    assert second.embeddings.position is not first.embeddings.position


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="num_heads=3"):
        TransformerEncoder(**{**CONFIG, "num_heads": 3})
    for name, size in (("num_layers", -1), ("hidden_size", 0), ("num_heads", 1.5)):
        with pytest.raises(ValueError, match=f"`{name}` must be a whole .*got {size}"):
            TransformerEncoder(**{**CONFIG, name: size})
    encoder = TransformerEncoder(**CONFIG)
    with pytest.raises(ValueError, match="max_length=24"):
        encoder(make_inputs(length=25))


def test_saves_and_loads(tmp_path, inputs):
    encoder = TransformerEncoder(**CONFIG)
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    np.testing.assert_array_equal(np.array(encoder(inputs)), np.array(loaded(inputs)))


def test_tied_layers_are_the_same_objects_from_the_bottom(inputs):
    encoder = TransformerEncoder(**CONFIG)
    other = TransformerEncoder(**CONFIG, tied_to=encoder, tied_layers=1)
    assert other.layers_[0] is encoder.layers_[0]
    assert other.layers_[1] is not encoder.layers_[1]
    assert other.embedding_projection is not encoder.embedding_projection
    parts = ("token", "position", "segment", "norm", "projection")
    same = TransformerEncoder(
        **CONFIG, tied_to=encoder, tied_parts=parts, tied_layers=2
    )
    ours, theirs = same.trainable_variables, encoder.trainable_variables
    assert {id(v) for v in ours} == {id(v) for v in theirs}
    np.testing.assert_array_equal(same(inputs), encoder(inputs))


def test_errors_of_tied_layers():
    encoder = TransformerEncoder(**CONFIG)
    with pytest.raises(ValueError, match="`tied_layers`.*0 to 2.*got 3"):
        TransformerEncoder(**CONFIG, tied_to=encoder, tied_layers=3)
    with pytest.raises(ValueError, match="`tied_layers`.*0 to 0"):
        TransformerEncoder(**CONFIG, tied_layers=1)
    narrow = {**CONFIG, "hidden_size": 8}
    with pytest.raises(ValueError, match="`tied_layers`.*hidden_size=8 and 16"):
        TransformerEncoder(**narrow, tied_to=encoder, tied_layers=1)
