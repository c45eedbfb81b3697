import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.cross_view.bilstm.encoder import (
    BidirectionalLSTM,
    BiLSTMEncoder,
    RowDropout,
)
from keras_corrupt.cross_view.bilstm.word_embeddings import WordEmbeddings

LENGTHS = np.array([6, 4, 1])
MASK = (np.arange(6) < LENGTHS[:, None]).astype("int32")
SIZES = {
    "vocabulary_size": 30,
    "num_characters": 12,
    "character_size": 4,
    "filter_widths": [2, 3],
    "num_filters": 5,
    "hidden_sizes": [6, 4],
    "projection_size": 3,
}


def words(seed=0):
    rng = np.random.default_rng(seed)
    characters = rng.integers(1, 12, (3, 6, 7)).astype("int32")
    spelled = np.arange(7) < rng.integers(1, 8, (3, 6, 1))
    return {
        "word_ids": rng.integers(1, 30, (3, 6)).astype("int32"),
        "character_ids": characters * spelled,
        "padding_mask": MASK,
    }


def test_directions_are_keras_lstms_where_nothing_is_projected():
    layer = BidirectionalLSTM(5, 5)
    layer.build((None, None, 4))
    rng = np.random.default_rng(0)
    for variable in layer.weights:
        variable.assign(rng.normal(0, 0.5, variable.shape))
    x = rng.normal(size=(3, 6, 4)).astype("float32")
    for direction in range(2):
        layer.projections[direction].assign(np.eye(5))
        lstm = keras.layers.LSTM(5, return_sequences=True, go_backwards=direction == 1)
        lstm.build((None, None, 4))
        names = layer.kernels, layer.recurrent_kernels, layer.biases
        lstm.set_weights([np.array(pair[direction]) for pair in names])
        found = np.array(layer(x, MASK)[direction])
        for row, length in enumerate(LENGTHS):
            expected = np.array(lstm(x[row : row + 1, :length]))[0]
            expected = expected[::-1] if direction else expected
            np.testing.assert_allclose(found[row, :length], expected, atol=1e-5)


def test_projection_is_what_the_next_words_gates_read():
    layer = BidirectionalLSTM(5, 3)
    x = np.random.default_rng(0).normal(size=(1, 4, 2)).astype("float32")
    forward, _ = layer(x, np.ones((1, 4)))

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    kernel, recurrent, bias, projection = (
        np.array(pair[0])
        for pair in (
            *(layer.kernels, layer.recurrent_kernels),
            *(layer.biases, layer.projections),
        )
    )
    np.testing.assert_array_equal(bias, [0] * 5 + [1] * 5 + [0] * 10)
    output, cell = np.zeros(3), np.zeros(5)
    for t in range(4):
        i, f, g, o = np.split(x[0, t] @ kernel + output @ recurrent + bias, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        output = (sigmoid(o) * np.tanh(cell)) @ projection
        np.testing.assert_allclose(forward[0, t], output, atol=1e-5)


def test_spelling_is_the_greatest_response_of_each_filter_to_the_word():
    layer = WordEmbeddings(30, 12, 4, (2, 3), 5)
    inputs = words()
    found = np.array(layer.spelling(inputs["character_ids"]))
    table = np.array(layer.character.embeddings)
    for row, word in [(0, 0), (1, 2), (2, 0)]:
        ids = inputs["character_ids"][row, word]
        spelled = table[ids[ids > 0]]
        expected = []
        for convolution in layer.filters:
            kernel, bias = (np.array(w) for w in convolution.get_weights())
            padded = np.pad(spelled, [(0, len(kernel) - 1), (0, 0)])
            windows = [
                np.einsum("ws,wsf->f", padded[i : i + len(kernel)], kernel) + bias
                for i in range(len(spelled))
            ]
            expected += [np.maximum(0, windows).max(axis=0)]
        np.testing.assert_allclose(
            found[row, word], np.concatenate(expected), atol=1e-5
        )


def test_a_words_vector_is_the_sum_of_embedding_and_spelling():
    layer = WordEmbeddings(30, 12, 4, (2, 3), 5)
    inputs = words()
    found = layer(inputs["word_ids"], inputs["character_ids"])
    embeddings = np.array(layer.word.embeddings)[inputs["word_ids"]]
    spelling = np.array(layer.spelling(inputs["character_ids"]))
    np.testing.assert_allclose(found, embeddings + spelling, atol=1e-6)


def test_padding_changes_nothing():
    encoder = BiLSTMEncoder(**SIZES)
    inputs = words()
    for row, length in enumerate(LENGTHS):
        alone = {k: v[row : row + 1, :length] for k, v in inputs.items()}
        for whole, single in zip(encoder(inputs), encoder(alone), strict=True):
            for states, expected in zip(whole, single, strict=True):
                np.testing.assert_allclose(
                    np.array(states)[row, :length], np.array(expected)[0], atol=1e-6
                )


def test_each_sentence_has_its_own_dropout():
    x = np.ones((3, 200, 50), "float32")
    found = np.array(RowDropout()(x, np.array([0.0, 0.5, 0.8], "float32")))
    np.testing.assert_array_equal(found[0], 1.0)
    for row, rate in [(1, 0.5), (2, 0.8)]:
        assert abs((found[row] == 0).mean() - rate) < 0.03
        np.testing.assert_allclose(
            found[row][found[row] > 0], 1 / (1 - rate), rtol=1e-5
        )


def test_half_precision_does_not_change_the_rate():
    # bfloat16 has 128 numbers between a half and 1: drawn in it, 0.195 would stay.
    x = ops.ones((1, 1000, 1000), "bfloat16")
    found = RowDropout(dtype="bfloat16")(x, np.array([0.8], "float32"))
    assert found.dtype == x.dtype
    assert np.array(found != 0).mean() == pytest.approx(0.2, abs=0.002)


def test_parameters_are_counted():
    encoder = BiLSTMEncoder(**SIZES)
    encoder.build()
    assert encoder.count_params() == encoder.parameters(SIZES)


def test_flops_are_two_for_each_weight_and_word_but_for_what_is_no_matrix():
    # The published size, where matrices are nearly all that costs anything.
    encoder = BiLSTMEncoder(1, 100)
    matrices = encoder.parameters(encoder.sizes) - 100 * 50 - 300  # without both tables
    filters = (2 + 3 + 4) * 50 * 100 + 300
    expected = 2 * (matrices - filters) + 16 * 2 * filters
    assert encoder.flops(10, 16) == pytest.approx(10 * expected, rel=0.01)


def test_sizes_make_the_same_encoder():
    encoder = BiLSTMEncoder.from_config(BiLSTMEncoder(**SIZES).get_config())
    assert encoder.sizes == SIZES
