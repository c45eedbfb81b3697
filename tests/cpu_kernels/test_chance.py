"""What is random in the kernels is independent, whatever the seeds."""

import itertools

import numpy as np
import pytest

VALUES = 2**16
#: What `SeedGenerator.next` may return: seed and count of the draws. Neighbours of
#: both, and the seeds of replicas (`devices/replicas.py`).
WORDS = [
    *itertools.product((4, 5, 6, 7), (0, 1, 2)),
    *(((5 + n * 0x9E3779B1) % 2**32, 1) for n in (1, 2, 3)),
]


class Words:
    """A seed generator that always gives the same."""

    def __init__(self, words):
        self.words = words

    def next(self):
        import tensorflow as tf

        return tf.constant(self.words, "uint32")


def mask_of_dropout(words):
    """1 or -1 for each value, kept or dropped."""
    import tensorflow as tf

    from keras_corrupt.cpu_kernels.residual_norm import residual_norm

    vectors = [tf.fill((256,), x) for x in (0.0, 1.0, 0.0)]
    ones = tf.ones((1, VALUES // 256, 256))
    normal = residual_norm(0 * ones, ones, *vectors, 1e-6, 0.5, Words(words))
    return np.sign(normal).ravel()


def samples(words):
    """1 or -1 for each draw of one of two tokens."""
    import tensorflow as tf

    from keras_corrupt.cpu_kernels.vocabulary import sample_tokens

    return 2 * np.array(sample_tokens(tf.zeros((VALUES, 2)), Words(words))) - 1


@pytest.mark.parametrize("draw", [mask_of_dropout, samples])
def test_draws_of_neighbouring_seeds_are_independent_at_any_shift(draw):
    transforms = [np.fft.fft(draw(words)) for words in WORDS]
    for one, other in itertools.combinations_with_replacement(range(len(WORDS)), 2):
        # The sum, over all places, of the products with what is n places further on:
        # for independent signs about normal, with variance 1 after the division.
        product = transforms[one] * np.conj(transforms[other])
        agreement = np.fft.ifft(product).real / VALUES**0.5
        if one == other:
            assert agreement[0] > 0.99 * VALUES**0.5
            agreement[0] = 0
        # 7.9 million normal numbers are all below 7 with a chance of 0.99998.
        assert np.abs(agreement).max() < 7, (WORDS[one], WORDS[other])
