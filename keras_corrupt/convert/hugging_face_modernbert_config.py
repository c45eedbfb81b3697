"""The `config.json` of Hugging Face's ModernBERT, in and out.

Later files name each layer's kind in `layer_types` and have `rope_parameters`. What
is written has the entries of the released files, which all versions read.
"""

from keras_corrupt.convert.files import sizes_of
from keras_corrupt.convert.hugging_face_config import GELUS, SIZES
from keras_corrupt.convert.weights import refuse

#: Our name -> theirs, and what a file has that does not say.
_RATES = {
    "dropout": ("mlp_dropout", 0.0),
    "attention_dropout": ("attention_dropout", 0.0),
    "initializer_range": ("initializer_range", 0.02),
    "layer_norm_epsilon": ("norm_eps", 1e-5),
}
#: Likewise, and the kind of the layers that have it.
_THETAS = {
    "rotary_theta": ("global_rope_theta", 160_000.0, "full_attention"),
    "local_rotary_theta": ("local_rope_theta", 10_000.0, "sliding_attention"),
}
_WINDOW, _EVERY = 128, 3
#: What all of their encoders are.
_FIXED = {
    "attention": "bidirectional",
    "relative_positions": None,
    "positions": "rotary",
    "norm": "pre",
    "num_segments": 0,
}
_SILU = "silu"


def read_encoder(file, config):
    """Returns the arguments of `TransformerEncoder` that a file describes.

    Args:
        file: The file, for errors.
        config: What it holds.

    Raises:
        ValueError: An encoder here cannot be that.
    """
    encoder = sizes_of(config, SIZES, file)
    activation = config.get("hidden_activation", "gelu")
    if activation not in (_SILU, *GELUS):
        raise ValueError(
            f"{file}: hidden_activation is {activation!r}, neither gelu nor silu."
        )
    is_silu = activation == _SILU
    if is_silu:  # then only a head has gelu
        activation = config.get("classifier_activation", "gelu")
    rates = {ours: config.get(*theirs) for ours, theirs in _RATES.items()}
    return {
        **encoder,
        **rates,
        **_FIXED,
        **_thetas(file, config),
        **_windows(file, config, encoder["num_layers"]),
        "feed_forward": "swiglu" if is_silu else "geglu",
        "approximate_gelu": GELUS.get(activation, False),
    }


def _thetas(file, config):
    thetas = {}
    for ours, (name, default, kind) in _THETAS.items():
        rope = (config.get("rope_parameters") or {}).get(kind) or {}
        if rope.get("rope_type", "default") != "default" or config.get("rope_scaling"):
            raise ValueError(f"{file}: its rotary positions are scaled; ours are not.")
        theta = rope.get("rope_theta", config.get(name, default))
        thetas[ours] = thetas["rotary_theta"] if theta is None else theta
    return thetas


def _windows(file, config, num_layers):
    every = config.get("global_attn_every_n_layers", _EVERY)
    kinds = config.get("layer_types")
    if kinds is not None:
        full = [i for i, kind in enumerate(kinds) if kind == "full_attention"]
        every = full[1] if len(full) > 1 else num_layers
        if full != [*range(0, num_layers, every)]:
            raise ValueError(
                f"{file}: layer_types has full_attention in the layers {full}; here "
                "they are 0, n, 2 n and so on."
            )
    if every == 1:
        return {"local_window": None}
    window = config.get("local_attention", _WINDOW)
    return {"local_window": window, "global_every": every}


def written(encoder, tokenizer):
    """Returns the entries that describe an encoder.

    Args:
        encoder: A `TransformerEncoder`.
        tokenizer: Its tokenizer, or `None`.

    Raises:
        ValueError: Their encoder is none such.
    """
    sizes = encoder.architecture
    others = {n: sizes[n] for n, value in _FIXED.items() if sizes[n] != value}
    if encoder.feed_forward == "gelu":
        others["feed_forward"] = "gelu"
    if encoder.embedding_size != encoder.hidden_size:
        others["embedding_size"] = encoder.embedding_size
    refuse(others, "Hugging Face's ModernBERT")
    gelu = "gelu_pytorch_tanh" if encoder.approximate_gelu else "gelu"
    is_local = encoder.local_window is not None
    ids = {"pad": encoder.padding_id}
    for name, role in (("cls", "classify"), ("sep", "separate")):
        ids[name] = None if tokenizer is None else tokenizer.role_ids[role]
    ids |= {"bos": ids["cls"], "eos": ids["sep"]}
    return {
        **{theirs: sizes[ours] for ours, theirs in SIZES.items()},
        **{theirs: sizes[ours] for ours, (theirs, _) in _RATES.items()},
        **{theirs: sizes[ours] for ours, (theirs, *_) in _THETAS.items()},
        "embedding_dropout": encoder.dropout,
        "hidden_activation": _SILU if encoder.feed_forward == "swiglu" else gelu,
        "classifier_activation": gelu,
        "local_attention": encoder.local_window if is_local else _WINDOW,
        "global_attn_every_n_layers": encoder.global_every if is_local else 1,
        **{f"{name}_token_id": number for name, number in ids.items()},
    }
