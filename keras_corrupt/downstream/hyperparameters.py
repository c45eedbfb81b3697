"""How the papers fine-tune: their settings, and what they searched.

Clark's thesis, table 5.2 and section 5.2.4; TEAMS (Shen et al., 2021), table 6 and
appendix C; COCO-LM (Meng et al., 2021), tables 7 and 8.
"""

import dataclasses
from typing import Literal

#: The tasks that COCO-LM's table 7 calls small, and WNLI, which it leaves out.
SMALL_TASKS = ("CoLA", "RTE", "MRPC", "STS-B", "WNLI")


@dataclasses.dataclass(frozen=True)
class Hyperparameters:
    """The settings of a fine-tuning run.

    Attributes:
        learning_rate: Peak learning rate.
        epochs: Passes over the training examples.
        batch_size: Sequences in an update.
        layer_decay: Factor of the learning rate from a layer to the one below it.
        layer_decay_rule: `"paper"`: the head learns at the full rate, the top layer
            at `layer_decay` times that. `"released"`: ELECTRA's released code, in
            which the top layer gets the factor squared.
        warmup_fraction: Fraction of the updates in which the rate rises.
        weight_decay: Decoupled weight decay.
        beta_2: Decay of the second moment's average.
        bias_correction: Whether Adam's averages are corrected for starting at zero.
        clip_norm: Largest norm of the gradient; 0 for any.
        dropout: Dropout rate of encoder, attention and head.
        report: Whether a run's score is that of its last epoch or of its best.
    """

    learning_rate: float
    epochs: int
    batch_size: int = 32
    layer_decay: float = 1.0
    layer_decay_rule: Literal["paper", "released"] = "paper"
    warmup_fraction: float = 0.1
    weight_decay: float = 0.0
    beta_2: float = 0.999
    bias_correction: bool = True
    clip_norm: float = 1.0
    dropout: float = 0.1
    report: Literal["last", "best"] = "last"


def size_of(encoder):
    """Returns which of the papers' sizes an encoder is nearest to, by its width."""
    widths = {"tiny": 128, "small": 256, "base": 768}
    for size, width in widths.items():
        if encoder.hidden_size <= width:
            return size
    return "large"


def published(system, size, task):
    """Returns a paper's settings for a task.

    Args:
        system: Class that pretrained the encoder: `"Electra"`, `"MaskedLM"` (the
            thesis's BERT, which it fine-tunes alike), `"Teams"` or `"CocoLM"`.
        size: `"tiny"` (ours: a higher rate), `"small"`, `"base"` or `"large"`.
        task: Name of the task; `"squad..."` for question answering.
    """
    squad = task.startswith("squad")
    if system == "Teams":
        rates = {"tiny": 1e-3, "small": 1e-4, "base": 3e-5, "large": 3e-5}
        epochs, batch_size = 5, 32
        if squad:
            rates = {"tiny": 1e-3, "small": 8e-5, "base": 5e-5, "large": 3e-5}
            epochs = 5 if size in ("tiny", "small") else 2
            batch_size = 32 if size == "base" else 48
        return Hyperparameters(
            learning_rate=rates[size],
            epochs=epochs,
            batch_size=batch_size,
            weight_decay=0.01,  # Model Garden's pipeline, which the paper used
            report="last" if squad else "best",
        )
    if system == "CocoLM":
        # Searched for each task; these lie within every range.
        return Hyperparameters(
            learning_rate=1e-3 if size == "tiny" else 2e-5,
            epochs=5 if task in SMALL_TASKS else 3,
            warmup_fraction=0.06,
            weight_decay=0.01,
            beta_2=0.98,
            clip_norm=0.0,
        )
    rates = {"tiny": 1e-3, "small": 3e-4, "base": 1e-4, "large": 5e-5}
    decays = {"tiny": 1.0, "small": 0.8, "base": 0.8, "large": 0.9}
    epochs = 2 if squad else 10 if task in ("RTE", "STS-B") else 3
    return Hyperparameters(
        learning_rate=rates[size],
        epochs=epochs,
        layer_decay=decays[size],
        # As released; the thesis does not say. Short runs at a high rate need it.
        bias_correction=size == "tiny",
    )


def search_space(system, size, task):
    """Returns what a paper searched for a task: setting -> values.

    Args:
        system: See `published`.
        size: See `published`.
        task: See `published`.
    """
    squad = task.startswith("squad")
    if system == "Teams":
        return {
            "learning_rate": (1e-5, 3e-5, 5e-5, 8e-5, 1e-4),
            "batch_size": (32, 48),
            "epochs": (2, 3, 5),
        }
    if system == "CocoLM":
        small = task in SMALL_TASKS
        large_rates = (7e-6, 1e-5, 2e-5, 3e-5)
        rates = (2e-5, 3e-5, 4e-5, 5e-5)
        if not (small or squad):
            large_rates, rates = (5e-6, 7e-6, 1e-5, 2e-5), (1e-5, 2e-5, 3e-5, 4e-5)
        return {
            "learning_rate": large_rates if size == "large" else rates,
            "batch_size": (16, 32) if small or squad else (32,),
            "warmup_fraction": (0.06, 0.1) if small or squad else (0.06,),
            "epochs": (2, 3) if squad else (2, 3, 5, 10) if small else (2, 3, 5),
        }
    if size == "large":
        return {"epochs": (2,) if squad else (10, 3)}
    if size == "base":
        return {
            "learning_rate": (3e-5, 5e-5, 1e-4, 1.5e-4),
            "layer_decay": (0.9, 0.8, 0.7),
        }
    # The thesis prints 5e-3 as the last, among [1e-4, 2e-4, 3e-4, 5e-3].
    return {"learning_rate": (1e-4, 2e-4, 3e-4, 5e-3)}


def rate_multipliers(num_layers, decay, rule="paper"):
    """Returns the factor of each part's learning rate: `AdamW`'s `rate_multipliers`.

    Clark's thesis, 5.2.4: with depth counted from the output, a part learns at
    `decay ** depth` times the rate. The head's depth is 0, the top layer's 1, the
    embeddings' `num_layers + 1`. Released code counts one more below the head.

    >>> rate_multipliers(2, 0.5)
    {'encoder/layer_0/': 0.25, 'encoder/layer_1/': 0.5, 'encoder/embedding': 0.125}
    """
    if not 0 < decay <= 1:
        raise ValueError(f"`layer_decay` must be above 0 and at most 1; got {decay}.")
    extra = {"paper": 0, "released": 1}[rule]
    depths = {f"encoder/layer_{i}/": num_layers - i for i in range(num_layers)}
    depths["encoder/embedding"] = num_layers + 1
    return {pattern: decay ** (depth + extra) for pattern, depth in depths.items()}
