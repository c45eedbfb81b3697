"""Examples as text, with notes in the place of some tokens."""


def render(tokenizer, inputs, describe):
    """Writes examples as text.

    Args:
        tokenizer: The tokenizer of the examples.
        inputs: A model's inputs, NumPy arrays `[batch, length]`.
        describe: Function of an example's number and its token ids that yields
            positions with what stands there instead of the token.

    Returns:
        A list of strings, one for each example, padding left out.
    """
    lengths = inputs["padding_mask"].sum(axis=1)
    rows = [ids[:n] for ids, n in zip(inputs["token_ids"], lengths, strict=True)]
    return [
        tokenizer.decode(ids, dict(describe(row, ids))) for row, ids in enumerate(rows)
    ]
