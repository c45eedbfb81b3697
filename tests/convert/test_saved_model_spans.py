import numpy as np

from keras_corrupt.downstream.span_extractor import window_starts


def test_the_window_that_shows_most_surroundings():
    from keras_corrupt.convert.saved_model_spans import shown_best

    for room, stride in [(10, 5), (10, 3), (7, 2), (9, 4), (3, 1), (2, 1)]:
        for length in range(1, 33):
            first = np.array(window_starts(length, room, stride))[:, None, None]
            last = np.minimum(first + room, length) - 1
            start, end = np.arange(length)[:, None], np.arange(length)
            surroundings = np.minimum(start - first, last - end)
            best = np.arange(len(first))[:, None, None] == surroundings.argmax(axis=0)
            found = shown_best(start, end, first, room, stride, length)
            np.testing.assert_array_equal(found, best)


def test_best_spans_by_hand():
    import tensorflow as tf

    from keras_corrupt.convert.saved_model_spans import best_spans

    # Two windows of one context, then one each of two others; beams of 2.
    scores = [
        [[1.0, 2.0], [7.0, -1e9]],
        [[6.0, 5.0], [4.0, -1e9]],
        [[-9.0, -8.0], [-7.0, -2e9]],
        [[-2e9, -2e9], [-2e9, -2e9]],
    ]
    preferred = np.zeros((4, 2, 2), bool)
    preferred[0, 0] = preferred[1, 0, 1] = True  # 1, 2 and 5
    preferred[2:, 1, 1] = True  # which are no spans
    windows = tf.constant([2, 1, 1], tf.int64)
    found = best_spans(tf.constant(scores), tf.constant(preferred), windows)
    assert found.numpy()[:2].tolist() == [5, 10]
    assert 12 <= found[2] < 16
