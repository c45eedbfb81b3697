"""What the `config.json` files of Hugging Face's encoders have in common."""

#: Our size -> theirs.
SIZES = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "num_heads": "num_attention_heads",
    "max_length": "max_position_embeddings",
}
#: Our rate -> theirs; ModernBERT has names of its own.
RATES = {
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
    "layer_norm_epsilon": "layer_norm_eps",
}
#: Their activation -> our `approximate_gelu`.
GELUS = {"gelu": False, "gelu_new": True, "gelu_pytorch_tanh": True}


def check_fixed(config, fixed, file):
    """Raises a `ValueError` for an entry that an encoder here has no choice of.

    Args:
        config: What the file holds, a dict.
        fixed: Entry -> the value that an encoder here has.
        file: The file, for errors.
    """
    for name, value in fixed.items():
        if config.get(name, value) != value:
            raise ValueError(
                f"{file}: {name} is {config[name]!r}; an encoder here has {value!r}."
            )
