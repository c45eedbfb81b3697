"""Learning-rate schedules."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_corrupt")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up times linear decay to zero, as in BERT's and ELECTRA's release.

        rate(step) = peak_rate * (1 - step / total_steps) * min(1, step / warmup_steps)

    The two factors multiply, so the rate's maximum, at the end of the warm-up, lies
    a little below `peak_rate`.

    Args:
        peak_rate: The learning rate that both factors scale.
        total_steps: Number of updates after which the rate is zero.
        warmup_steps: Number of updates of the warm-up; 0 for none.

    Raises:
        ValueError: The warm-up is not shorter than the whole.

    >>> schedule = WarmupLinearDecay(1.0, total_steps=100, warmup_steps=10)
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 10, 50, 100)]
    [0.0, 0.475, 0.9, 0.5, 0.0]
    """

    def __init__(self, peak_rate, total_steps, warmup_steps=0):
        if not 0 <= warmup_steps < total_steps:
            raise ValueError(
                "`warmup_steps` must be at least 0 and less than `total_steps`; got "
                f"warmup_steps={warmup_steps}, total_steps={total_steps}."
            )
        self.peak_rate = peak_rate
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        decay = ops.maximum(0.0, 1.0 - step / self.total_steps)
        warmup = 1.0
        if self.warmup_steps:
            warmup = ops.minimum(1.0, step / self.warmup_steps)
        return self.peak_rate * decay * warmup

    def get_config(self):
        return {
            "peak_rate": self.peak_rate,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }


@keras.saving.register_keras_serializable(package="keras_corrupt")
class WarmupStableDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, a constant rate, and a last decay to zero.

    Before the decay the rate does not depend on the number of updates. The decay is
    the "1-sqrt" of Hägele et al., "Scaling Laws and Compute-Optimal Training Beyond
    Fixed Training Durations", 2024, section 3, which ModernBERT has, too:

        rate(step) = peak_rate * min(1, step / warmup_steps)
        rate(step) = peak_rate * (1 - sqrt((step - start) / decay_steps)), from start on

    Args:
        peak_rate: The constant rate.
        total_steps: Number of updates after which the rate is zero.
        warmup_steps: Number of updates of the warm-up; 0 for none.
        decay_steps: Number of updates of the decay, the last ones.

    Raises:
        ValueError: Warm-up and decay are more than the whole, or there is no decay.

    >>> schedule = WarmupStableDecay(1.0, 100, warmup_steps=10, decay_steps=16)
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 10, 84, 88, 100)]
    [0.0, 0.5, 1.0, 1.0, 0.5, 0.0]
    """

    def __init__(self, peak_rate, total_steps, warmup_steps, decay_steps):
        if not 0 <= warmup_steps <= total_steps - decay_steps < total_steps:
            raise ValueError(
                "`warmup_steps` must be at least 0, `decay_steps` at least 1, and both "
                f"`total_steps` together at most; got warmup_steps={warmup_steps}, "
                f"decay_steps={decay_steps}, total_steps={total_steps}."
            )
        self.peak_rate = peak_rate
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.decay_steps = decay_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        warmup = (
            ops.minimum(1.0, step / self.warmup_steps) if self.warmup_steps else 1.0
        )
        decayed = step - (self.total_steps - self.decay_steps)
        part = ops.clip(decayed / self.decay_steps, 0.0, 1.0)
        return self.peak_rate * warmup * (1.0 - ops.sqrt(part))

    def get_config(self):
        return {
            "peak_rate": self.peak_rate,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "decay_steps": self.decay_steps,
        }


@keras.saving.register_keras_serializable(package="keras_corrupt")
class InverseRootDecay(keras.optimizers.schedules.LearningRateSchedule):
    """The rate of Cross-View Training (Clark's thesis, table 4.1).

        rate(step) = peak_rate / (1 + decay * sqrt(step))

    Args:
        peak_rate: The learning rate of the first update.
        decay: How fast the rate falls.

    >>> schedule = InverseRootDecay(0.5, decay=0.005)
    >>> [round(float(schedule(step)), 4) for step in (0, 10_000, 40_000)]
    [0.5, 0.3333, 0.25]
    """

    def __init__(self, peak_rate, decay):
        if peak_rate <= 0 or decay < 0:
            raise ValueError(
                "`peak_rate` must be positive and `decay` not negative; got "
                f"peak_rate={peak_rate}, decay={decay}."
            )
        self.peak_rate = peak_rate
        self.decay = decay

    def __call__(self, step):
        step = ops.cast(step, "float32")
        return self.peak_rate / (1.0 + self.decay * ops.sqrt(step))

    def get_config(self):
        return {"peak_rate": self.peak_rate, "decay": self.decay}


@keras.saving.register_keras_serializable(package="keras_corrupt")
class LateLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A constant rate that falls linearly to zero in the last part of a run.

    Virtual adversarial training of images has it (Miyato et al., 2018, appendix).

    Args:
        peak_rate: The learning rate before it falls.
        total_steps: Number of updates after which the rate is zero.
        start: The part of these after which it falls, less than 1.

    >>> schedule = LateLinearDecay(1.0, total_steps=90, start=2 / 3)
    >>> [round(float(schedule(step)), 3) for step in (0, 60, 75, 90)]
    [1.0, 1.0, 0.5, 0.0]
    """

    def __init__(self, peak_rate, total_steps, start):
        if peak_rate <= 0 or not 0 <= start < 1:
            raise ValueError(
                "`peak_rate` must be positive and `start` at least 0 and less than 1; "
                f"got peak_rate={peak_rate}, start={start}."
            )
        self.peak_rate = peak_rate
        self.total_steps = total_steps
        self.start = start

    def __call__(self, step):
        left = 1.0 - ops.cast(step, "float32") / self.total_steps
        return self.peak_rate * ops.clip(left / (1.0 - self.start), 0.0, 1.0)

    def get_config(self):
        return {
            "peak_rate": self.peak_rate,
            "total_steps": self.total_steps,
            "start": self.start,
        }
