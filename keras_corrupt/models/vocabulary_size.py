"""How many tokens a model has, and how many its tokenizer."""


def size_argument(cls, tokenizer):
    """Returns the argument that gives new networks of a class a tokenizer's size."""
    main = next(iter(cls.network_arguments))
    return {main: {"vocabulary_size": tokenizer.vocabulary_size}}


def check_fits(cls, tokenizer, vocabulary_size):
    """Raises a `ValueError` if a tokenizer has more tokens than a model of a class."""
    if tokenizer.vocabulary_size > vocabulary_size:
        ((name, value),) = size_argument(cls, tokenizer).items()
        raise ValueError(
            f"`tokenizer` has {tokenizer.vocabulary_size} tokens, more than the "
            f"model's vocabulary_size={vocabulary_size}. Pass {name}={value} where "
            "weights are new, or else the tokenizer that they were trained with."
        )
