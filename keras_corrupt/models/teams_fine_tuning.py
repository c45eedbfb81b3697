"""How TEAMS is fine-tuned: Shen et al., 2021, table 6 and appendix C."""

from keras_corrupt.models.fine_tuning import FineTuningSettings, is_squad


def settings(size, task):
    """Returns the paper's settings for a task (table 6).

    Args:
        size: `"tiny"` (ours: a higher rate), `"small"`, `"base"` or `"large"`.
        task: The task's name.

    >>> settings("small", "CoLA").learning_rate
    0.0001
    """
    rates = {"tiny": 1e-3, "small": 1e-4, "base": 3e-5, "large": 3e-5}
    epochs, batch_size = 5, 32
    if is_squad(task):
        rates = {"tiny": 1e-3, "small": 8e-5, "base": 5e-5, "large": 3e-5}
        epochs = 5 if size in ("tiny", "small") else 2
        batch_size = 32 if size == "base" else 48
    return FineTuningSettings(
        learning_rate=rates[size],
        epochs=epochs,
        batch_size=batch_size,
        weight_decay=0.01,  # Model Garden's pipeline, which the paper used
        report="last" if is_squad(task) else "best",
    )


def search_space(size, task):
    """Returns what the paper searched (appendix C), alike for all sizes and tasks.

    Args:
        size: See `settings`.
        task: See `settings`.

    Returns:
        Setting -> values.
    """
    return {
        "learning_rate": (1e-5, 3e-5, 5e-5, 8e-5, 1e-4),
        "batch_size": (32, 48),
        "epochs": (2, 3, 5),
    }
