"""What a pretraining run is: the fields of a recipe, and its command-line flags."""

import dataclasses
import json
from typing import Any, Literal

import tyro

from keras_corrupt.commands.bounds import Bounds, check_bounds, check_whole_numbers
from keras_corrupt.data import settings
from keras_corrupt.data.settings import ExampleSettings
from keras_corrupt.training.phases import Phase
from keras_corrupt.training.run_directory import ORDER

#: Field -> its bounds. All are finite.
BOUNDS = {
    **settings.BOUNDS,
    "batch_size": Bounds(1),
    "steps": Bounds(1),
    "generator_steps": Bounds(0),
    "learning_rate": Bounds(0, above=True),
    "warmup_steps": Bounds(0),
    "decay_steps": Bounds(1),
    "weight_decay": Bounds(0),
    "beta_1": Bounds(0, 1),
    "beta_2": Bounds(0, 1),
    "epsilon": Bounds(0, above=True),
    "clip_norm": Bounds(0),
    "accumulate": Bounds(1),
    "at_once": Bounds(1),
    "ema": Bounds(0, 1),
    "interval": Bounds(1),
    "validation_batches": Bounds(1),
    "keep_presets": Bounds(0),
    "processes": Bounds(1),
}


@dataclasses.dataclass(frozen=True)
class Subject:
    """The model to train, its text, and the place of the result."""

    model: str
    """Objective: a class in `keras_corrupt.models`, or `module:Class`."""
    preset: str
    """Size of the networks: one of the model's presets."""
    output: str
    """Directory of the run; continues the run that it holds, if any."""

    # What to train on.
    corpus: tuple[str, ...] = ()
    """Files, globs, directories, their URLs (`gs://`, `s3://`), `tfds:NAME`,
    `hf-datasets:NAME`, or `python-docs` (built in)."""
    data: str | None = None
    """A directory of examples made before, used instead of the corpus. It decides
    about `corpus` and all that follows `mix`, down to `on_bad_rows`."""
    mix: tuple[tuple[str, float], ...] = ()
    """Other corpora and their fractions of the examples, such as the old one against
    forgetting: `--mix wiki.txt 0.1`. Each is like one of `corpus`, or a directory of
    examples with the same vocabulary. Its held-out documents are validated on, too, and
    a fraction of 0 does that alone."""


@dataclasses.dataclass(frozen=True)
class PretrainConfig(ExampleSettings, Subject):
    """Everything that decides what a pretraining run does.

    A recipe returns one of these. Each field is a flag of the recipe's command.
    """

    workers: int | None = None
    """Processes that prepare examples; by default one for each core, four at most, and
    one for little text."""

    # The objective's own options, with the paper's values.
    objective: tyro.conf.Suppress[dict[str, Any]] = dataclasses.field(
        default_factory=dict
    )
    """Options of the model, and of its networks in dicts of their own."""

    # How to train.
    sequence_length: int = 128
    """Tokens in a sequence."""
    fill_rows: bool = False
    """Whether a sequence holds several examples, as many as fit, in place of padding.
    Each is read by itself; masked positions are drawn from all together."""
    batch_size: int = 128
    """Sequences in an update."""
    steps: int = 1_000_000
    """Number of updates."""
    generator_steps: int | None = None
    """How many of `steps` train the generator first, alone: where `init_from` has none.
    The discriminator stays as it is meanwhile."""
    phases: tyro.conf.Suppress[tuple[Phase, ...]] = ()
    """Parts of the run that train other networks, or otherwise; one if not given."""
    learning_rate: float = 5e-4
    """Peak learning rate."""
    warmup_steps: int = 10_000
    """Updates of linear warm-up, which multiplies the schedule."""
    schedule: Literal["linear", "stable"] = "linear"
    """How the learning rate ends at zero: it falls linearly in all updates, or is
    stable and falls in the last `decay_steps`. A stable run keeps its state before the
    decay, for `resume_from`."""
    decay_steps: int | None = None
    """Updates of a stable schedule's decay; by default the last tenth."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """`muon` updates the matrices of the layers by orthogonal steps, and the rest as
    `adamw`, with the same rate."""
    weight_decay: float = 0.01
    """Decay of everything but biases and layer norms."""
    beta_1: float = 0.9
    """Adam's first decay rate."""
    beta_2: float = 0.999
    """Adam's second decay rate."""
    epsilon: float = 1e-6
    """Adam's epsilon."""
    bias_correction: bool = False
    """Whether Adam corrects its averages; BERT's and ELECTRA's release does not."""
    clip_norm: float = 1.0
    """Largest global norm of the gradient; 0 for no limit."""
    accumulate: int = 1
    """Parts that a batch goes through the model in, for less memory; divides it."""
    ema: float = 0.0
    """Momentum of an average of the weights, which is then the result; 0 for none."""
    dtype: Literal["float32", "mixed_bfloat16", "auto"] = "float32"
    """Precision of the layers; weights and losses are always float32. `auto` is
    bfloat16 where the hardware multiplies it faster."""
    seed: int = 0
    """Seed of initial weights, order of examples, masks, samples and dropout."""
    interval: int = 1000
    """Updates between validations, each with a checkpoint."""
    validation_batches: int = 50
    """Batches in a validation, at most."""
    keep_presets: int = 0
    """Updates between models that are kept, in `presets/step-...`: a multiple of
    `interval`; 0 for none. The last is always in `preset`."""

    at_once: int | None = None
    """Updates in one call of the device, at most: the same up to rounding. By
    default 25 on accelerators with JAX, else 1. A continued run may differ in this."""

    recover: bool = False
    """Whether a run whose model dies goes back to the last checkpoint by itself, with
    half the learning rate; three times at most. A continued run may differ in this."""

    # Who follows the run. A continued run may differ in these.
    wandb: str | None = None
    """Project of Weights & Biases that gets the settings and each row of metrics."""
    mlflow: str | None = None
    """Experiment of MLflow, or the address of its server or store, that gets them."""

    # Where to train. A continued run may differ in these.
    devices: Literal["auto"] | int = "auto"
    """Number of devices to share each batch among; all there are if not given."""
    strategy: Literal["auto", "none", "mirrored", "tpu", "jax"] = "auto"
    """How: by TensorFlow's `MirroredStrategy` or `TPUStrategy`, or by JAX."""
    coordinator: str | None = None
    """HOST:PORT of the first of several JAX processes; `auto` on a Cloud TPU or under
    Slurm."""
    processes: int = 1
    """Number of these processes; each is started with the same command."""
    process_id: int = 0
    """The number of this process, from 0."""

    init_from: str | None = None
    """A preset, directory or name, whose weights (and tokenizer) to start from. From
    another system's only the encoder is loaded; the rest is new, as in `preset`."""
    resume_from: str | None = None
    """Directory of a run with a stable schedule, whose state before its decay this run
    begins with, its steps included: to make it longer, or to decay on other text."""
    smoke: bool = False
    """Shrink everything and use the built-in corpus, to see that it runs."""

    def shrunk(self):
        """Returns the `--smoke` form: the same path through the code, in seconds."""
        from keras_corrupt.presets.overrides import merge

        length, objective = min(self.sequence_length, 32), self.objective
        if self.data:  # Its examples keep their length, and the model reads it.
            length = self.sequence_length
            if not self.init_from:
                main = next(iter(self.model_class.network_arguments))
                objective = merge({main: {"max_length": length}}, objective)
        return dataclasses.replace(
            self,
            preset="tiny",
            objective=objective,
            corpus=() if self.data else ("python-docs",),
            mix=tuple(("python-docs", fraction) for _, fraction in self.mix),
            vocabulary_size=min(self.vocabulary_size, 1000),
            grow_vocabulary=min(self.grow_vocabulary, 10),
            validation_fraction=max(self.validation_fraction, 0.1),
            workers=1,
            sequence_length=length,
            batch_size=8,
            steps=6 if not self.phases else 3 * len(self.phases),
            generator_steps=min(self.generator_steps or 0, 3) or self.generator_steps,
            phases=tuple(
                dataclasses.replace(phase, steps=3, warmup_steps=1)
                for phase in self.phases
            ),
            warmup_steps=min(self.warmup_steps, 1),
            decay_steps=self.decay_steps and 2,
            accumulate=min(self.accumulate, 2),
            interval=3,
            keep_presets=3 if self.keep_presets else 0,
            validation_batches=2,
        )

    @property
    def model_class(self):
        """The class of the model.

        Raises:
            ValueError: There is none of this name.
        """
        from keras_corrupt.models import Pretrainer
        from keras_corrupt.presets.registry import import_class

        return import_class(self.model, Pretrainer)

    def check(self):
        """Raises an error for settings that cannot work, before any work is done.

        Raises:
            ValueError: Names the flag, its value and what would be right.
        """
        from keras_corrupt.data.mixing import check_fractions
        from keras_corrupt.models.options import check_options
        from keras_corrupt.presets.overrides import merge
        from keras_corrupt.training.stable import check_stable

        cls = self.model_class
        if self.preset not in cls.presets and not self.init_from:
            raise ValueError(
                f"--preset {self.preset}: unknown; known are {', '.join(cls.presets)}."
            )
        check_options(cls, self.objective)
        if not self.corpus and not self.data:
            raise ValueError(
                "Say what to train on: --corpus (files, a directory, tfds:NAME, or "
                "python-docs) or --data (examples made before)."
            )
        check_whole_numbers(self)
        check_bounds(vars(self), BOUNDS)
        if self.grow_vocabulary and not (self.init_from or self.vocabulary):
            raise ValueError(
                f"--grow_vocabulary {self.grow_vocabulary}: there is no vocabulary to "
                "grow. Give --init_from or --vocabulary, or a --vocabulary_size."
            )
        check_fractions([fraction for _, fraction in self.mix])
        if self.batch_size % self.accumulate:
            raise ValueError(
                f"--batch_size {self.batch_size} is not divisible by --accumulate "
                f"{self.accumulate}."
            )
        if self.coordinator and not self.data:
            raise ValueError(
                "Several processes need --data, examples that each can read. Make them "
                "once with python -m keras_corrupt.data prepare."
            )
        if not 0 <= self.process_id < self.processes:
            raise ValueError(
                f"--process_id {self.process_id} must be from 0 to less than "
                f"--processes {self.processes}."
            )
        if self.warmup_steps >= self.steps:
            raise ValueError(
                f"--warmup_steps {self.warmup_steps} must be less than --steps "
                f"{self.steps}."
            )
        check_stable(self)
        if self.generator_steps and self.phases:
            raise ValueError(
                f"--generator_steps {self.generator_steps} is a phase of its own, and "
                "the recipe has `phases`: leave it out, or take another recipe."
            )
        if (self.generator_steps or 0) >= self.steps:
            raise ValueError(
                f"--generator_steps {self.generator_steps} must be fewer than --steps "
                f"{self.steps}, of which they are the first."
            )
        if self.keep_presets % self.interval:
            raise ValueError(
                f"--keep_presets {self.keep_presets} is no multiple of --interval "
                f"{self.interval}, after which a model can be kept."
            )
        if not self.init_from:
            main = next(iter(cls.network_arguments))
            network = merge(cls.presets[self.preset], self.objective)[main]
            positions = network.get("max_length", self.sequence_length)
            if self.sequence_length > positions:
                raise ValueError(
                    f"--sequence_length {self.sequence_length} is longer than the "
                    f"{positions} positions of preset {self.preset}. Shorten it, or "
                    f"set --{main}.max_length."
                )

    def keeps(self, step):
        """Returns whether the run keeps the model after an update, in `presets`."""
        return bool(self.keep_presets) and step % self.keep_presets == 0

    #: Fields that name files, and what to read of them: a continued run compares what
    #: was read, since a project may have been moved. See `record_examples`.
    FILES = (
        *("corpus", "text_column", "data", "vocabulary", "init_from", "resume_from"),
    )
    #: Fields that may differ when a run is continued.
    MAY_CHANGE = (
        *("output", "workers", "validation_batches", "keep_presets", "recover"),
        *("wandb", "mlflow"),
        *("at_once", "devices", "strategy", "coordinator", "processes", "process_id"),
    )

    def as_dict(self):
        """Returns the fields that a continued run must agree with, JSON-ready."""
        fields = json.loads(json.dumps(dataclasses.asdict(self)))
        kept = {name: v for name, v in fields.items() if name not in self.MAY_CHANGE}
        if not self.fill_rows:  # runs of earlier versions have no such setting
            del kept["fill_rows"]
        return kept | {ORDER: 2}

    @classmethod
    def compared(cls, settings):
        """Returns a run's settings without the names of files, which may be others."""
        mix = [fraction for _, fraction in settings.get("mix", [])]
        kept = {name: v for name, v in settings.items() if name not in cls.FILES}
        return kept | {"mix": mix}
