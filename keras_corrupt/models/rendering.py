"""Examples as text, with some tokens replaced by what is said of them."""


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
    texts = []
    for row, ids in enumerate(inputs["token_ids"]):
        ids = ids[: inputs["padding_mask"][row].sum()]
        words = tokenizer.tokens(ids)
        for position, text in describe(row, ids):
            words[position] = text
        texts.append(_join(words))
    return texts


def _join(words):
    # A plain piece joins the one before it; a described one keeps its "##".
    spaced = (w[2:] if w.startswith("##") else f" {w}" for w in words)
    return "".join(spaced)[1:]
