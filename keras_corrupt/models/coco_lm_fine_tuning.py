"""How COCO-LM is fine-tuned: Meng et al., 2021, tables 7 and 8."""

from keras_corrupt.models.fine_tuning import FineTuningSettings, is_squad

#: The tasks that table 7 calls small, and WNLI, which it leaves out.
SMALL_TASKS = ("CoLA", "RTE", "MRPC", "STS-B", "WNLI")


def settings(size, task):
    """Returns settings for a task that lie within every range of the paper's tables.

    The paper searched for each task; it does not print what it found.

    Args:
        size: `"tiny"` (ours: a higher rate), `"small"`, `"base"` or `"large"`.
        task: The task's name.

    >>> settings("base", "CoLA").beta_2
    0.98
    """
    return FineTuningSettings(
        learning_rate=1e-3 if size == "tiny" else 2e-5,
        epochs=5 if task in SMALL_TASKS else 3,
        warmup_fraction=0.06,
        weight_decay=0.01,
        beta_2=0.98,
        clip_norm=0.0,
    )


def search_space(size, task):
    """Returns what the paper searched (tables 7 and 8): setting -> values.

    Args:
        size: See `settings`.
        task: See `settings`.
    """
    small, squad = task in SMALL_TASKS, is_squad(task)
    rates, large_rates = (1e-5, 2e-5, 3e-5, 4e-5), (5e-6, 7e-6, 1e-5, 2e-5)
    if small or squad:
        rates, large_rates = (2e-5, 3e-5, 4e-5, 5e-5), (7e-6, 1e-5, 2e-5, 3e-5)
    return {
        "learning_rate": large_rates if size == "large" else rates,
        "batch_size": (16, 32) if small or squad else (32,),
        "warmup_fraction": (0.06, 0.1) if small or squad else (0.06,),
        "epochs": (2, 3) if squad else (2, 3, 5, 10) if small else (2, 3, 5),
    }
