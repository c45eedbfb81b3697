"""Examples as a person reads them, masked as a generator would see them."""

import keras
import numpy as np

from keras_corrupt.corruption import choose_positions, mask_tokens


def masked_examples(tokenizer, inputs, mask_rate=0.15, seed=0):
    """Shows examples as a generator would see them.

    Args:
        tokenizer: The `Tokenizer` they were made with.
        inputs: A model's inputs, NumPy arrays `[batch, length]`.
        mask_rate: Fraction of the tokens to mask.
        seed: Seed of the choice.

    Returns:
        A list of strings, one for each example.
    """
    seed = keras.random.SeedGenerator(seed)
    unmaskable = (tokenizer.padding_id, tokenizer.classify_id, tokenizer.separate_id)
    masking = choose_positions(inputs, mask_rate, unmaskable, seed)
    masked_ids = mask_tokens(
        inputs["token_ids"],
        masking,
        tokenizer.mask_id,
        tokenizer.vocabulary_size,
        keep_rate=0.0,
        random_rate=0.0,
        seed=seed,
    )
    lengths = inputs["padding_mask"].sum(axis=1)
    return [
        tokenizer.decode(ids[:length])
        for ids, length in zip(np.array(masked_ids), lengths, strict=True)
    ]
