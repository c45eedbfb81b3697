"""Examples as a person reads them: what was masked, replaced, and found out."""

import keras
import numpy as np

from keras_corrupt.corruption import choose_positions, mask_tokens


def corrupted_examples(model, inputs):
    """Describes what a model does to some examples.

    A masked language model's masked tokens stand as `[original: prediction]`. In
    ELECTRA's text `[original > replacement 0.93]` is a replaced token with the
    discriminator's probability that it was replaced, and `<token 0.71>` an original
    token that the discriminator takes for a replaced one.

    Args:
        model: An `Electra` or `MaskedLM` with a tokenizer.
        inputs: The model's inputs, NumPy arrays `[batch, length]`.

    Returns:
        A list of strings, one for each example.
    """
    outputs = {name: np.array(x) for name, x in model(inputs, training=False).items()}
    describe = _detections if "rtd_logits" in outputs else _predictions
    tokenizer, texts = model.tokenizer, []
    for row, ids in enumerate(inputs["token_ids"]):
        length = inputs["padding_mask"][row].sum()
        descriptions = describe(tokenizer.readable, ids[:length], outputs, row)
        texts.append(tokenizer.decode(ids[:length], dict(descriptions)))
    return texts


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


def _detections(token, ids, outputs, row):
    probabilities = 1.0 / (1.0 + np.exp(-outputs["rtd_logits"][row]))
    for position, original in enumerate(ids):
        corrupted, p = outputs["corrupted_ids"][row][position], probabilities[position]
        if corrupted != original:
            yield position, f"[{token(original)} > {token(corrupted)} {p:.2f}]"
        elif p > 0.5:
            yield position, f"<{token(original)} {p:.2f}>"


def _predictions(token, ids, outputs, row):
    predicted = outputs["mlm_logits"][row].argmax(axis=-1)
    for slot, position in enumerate(outputs["masked_positions"][row]):
        if outputs["masked_weights"][row][slot]:
            guess = token(predicted[slot])
            yield position, f"[{token(ids[position])}: {guess}]"
