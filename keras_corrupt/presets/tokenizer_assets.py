"""What a tokenizer and the vocabulary of a model have to do with each other."""


def vocabulary_of(cls, tokenizer):
    """Returns the argument that gives new networks of a class a tokenizer's size."""
    main = next(iter(cls.network_arguments))
    return {main: {"vocabulary_size": tokenizer.vocabulary_size}}


def check_vocabulary(cls, tokenizer, vocabulary_size):
    """Raises a `ValueError` if a tokenizer has more tokens than a model of a class."""
    if tokenizer.vocabulary_size > vocabulary_size:
        ((name, value),) = vocabulary_of(cls, tokenizer).items()
        raise ValueError(
            f"`tokenizer` has {tokenizer.vocabulary_size} tokens, more than the "
            f"model's vocabulary_size={vocabulary_size}. Pass {name}={value} where "
            "weights are new, or else the tokenizer that they were trained with."
        )
