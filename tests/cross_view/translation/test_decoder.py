import keras
import numpy as np
import pytest
from scipy.special import expit, softmax

from keras_corrupt.cross_view.translation.decoder import (
    LSTM,
    AttentionModule,
    Decoder,
)

RNG = np.random.default_rng(0)


def drawn(*shape):
    return RNG.normal(size=shape).astype("float32")


def randomized(layer):
    for variable in layer.trainable_variables:
        variable.assign(drawn(*variable.shape))
    return layer


def test_an_lstm_starts_from_its_state_and_projects_its_output():
    lstm = LSTM(5, 3)
    lstm.build((None, None, 4))
    assert np.array(lstm.bias).tolist() == [0] * 5 + [1] * 5 + [0] * 10
    randomized(lstm)
    x, output, cell = drawn(2, 6, 4), drawn(2, 3), drawn(2, 5)
    found = np.array(lstm(x, (output, cell)))
    weights = (lstm.kernel, lstm.recurrent, lstm.bias, lstm.projection)
    kernel, recurrent, bias, projection = map(np.array, weights)
    state = output, cell
    for t in range(6):
        i, f, g, o = np.split(x[:, t] @ kernel + output @ recurrent + bias, 4, -1)
        cell = expit(f) * cell + expit(i) * np.tanh(g)
        output = (expit(o) * np.tanh(cell)) @ projection
        np.testing.assert_allclose(found[:, t], output, atol=1e-4)
        state = lstm.step(x[:, t], state)
        np.testing.assert_allclose(state[0], output, atol=1e-4)
        np.testing.assert_allclose(state[1], cell, atol=1e-4)


def test_an_lstm_is_keras_own_where_nothing_is_projected():
    lstm, theirs = LSTM(3, 3), keras.layers.LSTM(3, return_sequences=True)
    lstm.build((None, None, 4))
    theirs.build((None, None, 4))
    randomized(lstm)
    lstm.projection.assign(np.eye(3))
    theirs.set_weights([np.array(w) for w in (lstm.kernel, lstm.recurrent, lstm.bias)])
    x, output, cell = drawn(2, 6, 4), drawn(2, 3), drawn(2, 3)
    expected = theirs(x, initial_state=[output, cell])
    np.testing.assert_allclose(lstm(x, (output, cell)), expected, atol=1e-5)


def make_decoder():
    decoder = Decoder(9, embedding_size=4, hidden_sizes=(5, 6), projection_size=3)
    decoder.build(7)
    return randomized(decoder)


def test_word_by_word_a_decoder_computes_the_same():
    decoder, word_ids = make_decoder(), RNG.integers(0, 9, (2, 5)).astype("int32")
    states = decoder.first_states(drawn(2, 7))
    whole = np.array(decoder(word_ids, states))
    for t in range(5):
        output, states = decoder.step(word_ids[:, t], states)
        np.testing.assert_allclose(output, whole[:, t], atol=1e-5)
    sizes = {name: decoder.sizes[name] for name in decoder.sizes}
    assert decoder.parameters(sizes, 9, 7) == decoder.count_params()


def test_first_states_are_a_layer_with_tanh_on_the_sentence():
    decoder, summary = make_decoder(), drawn(2, 7)
    for start, hidden, (output, cell) in zip(
        decoder.starts, (5, 6), decoder.first_states(summary), strict=True
    ):
        kernel, bias = map(np.array, (start.kernel, start.bias))
        expected = np.tanh(summary @ kernel + bias)
        np.testing.assert_allclose(output, expected[:, :3], atol=1e-5)
        np.testing.assert_allclose(cell, expected[:, 3:], atol=1e-5)
        assert cell.shape == (2, hidden)


def test_each_lstms_outputs_are_dropped_at_the_sentences_rate():
    decoder, word_ids = make_decoder(), np.ones((200, 4), "int32")
    states = decoder.first_states(drawn(200, 7))
    rates = np.repeat([0.0, 0.75], 100).astype("float32")
    plain, dropped = (np.array(decoder(word_ids, states, r)) for r in (None, rates))
    np.testing.assert_allclose(dropped[:100], plain[:100], atol=1e-6)
    dropped, plain = dropped[100:], plain[100:]
    assert (dropped == 0).mean() == pytest.approx(0.75, abs=0.05)
    # The last LSTM read what was left of the first one's outputs.
    assert np.abs(dropped / 4 - plain)[dropped != 0].max() > 1e-3


def make_attention(**arguments):
    module = AttentionModule(7, 9, **arguments)
    module.build(6, 3)
    return randomized(module)


def test_attention_is_bilinear_and_ends_in_tanh_and_softmax():
    module = make_attention()
    source, states = drawn(2, 4, 6), drawn(2, 5, 3)
    words = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    found = np.array(module(source, words, states))
    weights = (module.bilinear_kernel, module.hidden_kernel, module.output_kernel)
    bilinear, hidden, output = map(np.array, weights)
    for row, length in enumerate([4, 2]):
        h = source[row, :length]
        for t in range(5):
            alpha = softmax(h @ bilinear @ states[row, t])
            both = np.concatenate([alpha @ h, states[row, t]])
            expected = np.tanh(both @ hidden) @ output
            np.testing.assert_allclose(found[row, t], expected, atol=1e-4)
    assert module.parameters(6, 3, 7, 9) == module.count_params()


def test_attention_dropout_sets_weights_to_zero():
    module = make_attention(attention_dropout=0.5)
    source, states = np.eye(6, dtype="float32")[None], drawn(1, 300, 3)
    words = np.ones((1, 6), "int32")
    seed = keras.random.SeedGenerator(0)
    # A layer that shows the context: its tanh is invertible.
    small = np.concatenate([np.eye(6, 7), np.zeros((3, 7))]) * 0.1
    module.hidden_kernel.assign(small)
    module.output_kernel.assign(np.eye(7, 9))
    plain, dropped = (
        np.arctanh(np.array(module(source, words, states, seed=s))[0, :, :6]) * 10
        for s in (None, seed)
    )
    np.testing.assert_allclose(plain.sum(-1), 1.0, atol=1e-3)
    kept = dropped != 0
    assert kept.mean() == pytest.approx(0.5, abs=0.05)
    np.testing.assert_allclose(dropped[kept], 2 * plain[kept], atol=1e-3)
