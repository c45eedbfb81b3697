"""What decides the runs of multi-task training, beside the tasks."""

import dataclasses

from keras_corrupt.downstream.finetune import RunsConfig
from keras_corrupt.multitask.strategies import with_those_needed


@dataclasses.dataclass(frozen=True)
class MultiTaskConfig(RunsConfig):
    """Everything that decides the runs, beside the tasks.

    `settings` are for models of one task.
    """

    multi_settings: dict[str, int | float | str] = dataclasses.field(
        default_factory=dict
    )
    """Settings of models of all tasks, other than what follows from `settings`."""
    strategies: tuple[str, ...] = ("single", "multi")
    """What to compare; also `single_to_single`, `multi_to_multi`, `single_to_multi`,
    `single_to_multi_to_single`, `single_to_multi_to_single_to_multi`,
    `multi_then_single`, `single_to_multi_then_single`, `no_layer_decay`,
    `no_task_sampling`, `no_annealing_0`, `no_annealing_0.5`."""
    distill: bool = False
    """Whether to compare `single_to_multi` too."""
    teachers: int = 1
    """How many models teach together, their outputs' mean: the first seeds' models."""
    teacher_outputs: str | None = None
    """Directory with a file `TASK.npz` for each task, as another run left in
    `teachers`: they teach, and no teacher is trained."""

    @property
    def compared(self):
        """The strategies in the table."""
        names = (*self.strategies, *["single_to_multi"] * self.distill)
        return tuple(dict.fromkeys(names))

    def check(self):
        """Raises a `ValueError` for what cannot work; names the field."""
        super().check()
        with_those_needed(self.compared)
        if self.teachers > self.seeds:
            raise ValueError(
                f"`teachers` is {self.teachers}, but there are {self.seeds} runs: "
                "raise `seeds`."
            )
        if not self.compared:
            raise ValueError("`strategies` must be one or more.")

    def shrunk(self):
        multi = {**self.multi_settings, "epochs": 1, "batch_size": 8}
        return dataclasses.replace(super().shrunk(), multi_settings=multi)
