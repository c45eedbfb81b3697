"""What a run on several tasks is."""

import dataclasses

import tyro

from keras_corrupt.cross_view.run.config import CrossViewConfig


@dataclasses.dataclass(frozen=True)
class CrossViewMultiTaskConfig(CrossViewConfig):
    """The settings of taggers and parsers on one encoder (4.1.2)."""

    one_task_at_a_time: bool = False
    """Whether an unlabelled batch is one task's, drawn at random, and not all tasks'
    (table 4.3)."""
    # All of each task; the baselines are of one task.
    views: tyro.conf.Suppress[tuple[str, ...]] = ("full",)
    word_dropout: tyro.conf.Suppress[float] = 0.1
    vat_norm: tyro.conf.Suppress[float] = 0.5
    mean_teacher: tyro.conf.Suppress[float] = 0.0
    freeze_encoder: tyro.conf.Suppress[bool] = False

    def model_arguments(self):
        """Returns arguments of each task's model, which has all views of its kind."""
        fields = super().model_arguments()
        return {n: v for n, v in fields.items() if n != "views" or not self.unlabelled}
