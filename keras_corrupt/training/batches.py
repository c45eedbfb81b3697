"""The training batches and the validation batches of a pretraining run."""

from keras_corrupt.data import make_dataset
from keras_corrupt.training.callbacks import validate, without_prefix
from keras_corrupt.training.collapse import TokenSpreads
from keras_corrupt.training.compiling import compiles_with_xla


def training_batches(info, config, step, devices, mixed):
    """Returns the batches, this process's part, from update `step` on."""
    return make_dataset(
        info.directory,
        "train",
        batch_size=config.batch_size,
        max_length=config.sequence_length,
        seed=config.seed,
        start_step=step,
        num_hosts=devices.processes,
        host=devices.process,
        mix=[(other.info.directory, other.fraction) for other in mixed],
        fill_rows=config.fill_rows,
    )


def validation_batches(info, config):
    """Returns the held-out batches, of the size that goes through the model at once."""
    batches = make_dataset(
        info.directory,
        "validation",
        batch_size=config.batch_size // config.accumulate,
        max_length=config.sequence_length,
        seed=config.seed,
    )
    return batches.take(config.validation_batches * config.accumulate).kept()


class HeldOut:
    """The held-out examples of the corpus and of the mixed-in corpora.

    Args:
        validation: Batches of the corpus.
        mixed: A list of `Mixed`.
        config: A `PretrainConfig`.
        devices: The run's `Distribution`.
        model: The model of the run.
    """

    def __init__(self, validation, mixed, config, devices, model):
        self.spreads = TokenSpreads(model, compiles_with_xla(devices.strategy))
        size = config.batch_size // config.accumulate
        self.own = devices.part_of(validation, size)
        self.mixed = []
        for other in mixed:
            batches = validation_batches(other.info, config)
            self.mixed.append(devices.part_of(batches, size))

    def validate(self, model):
        """Returns the model's metrics; metrics on mixed corpora as `val_mix_1_...`."""
        metrics = validate(model, self.own)
        metrics["val_token_spread"] = self.spreads.measure(self.own)
        for number, batches in enumerate(self.mixed, 1):
            mixed_metrics = without_prefix(validate(model, batches))
            metrics |= {
                f"val_mix_{number}_{name}": v for name, v in mixed_metrics.items()
            }
        return metrics
