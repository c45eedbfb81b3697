"""What a run of Cross-View Training is, and its command line."""

import dataclasses
import sys
from typing import Literal

import tyro

from keras_corrupt.commands.bounds import Bounds, check_bounds, check_whole_numbers
from keras_corrupt.commands.frame import command, errors_in_a_line
from keras_corrupt.cross_view.presets import PRESETS
from keras_corrupt.cross_view.views import BASELINES, VIEW_PAIRS, VIEWS
from keras_corrupt.training import config as pretraining

#: Field of `CrossViewConfig`, or of a recipe's, -> its bounds, where they are not those
#: of pretraining.
BOUNDS = {
    "max_train": Bounds(1),
    "num_classes": Bounds(2),
    "translate": Bounds(0),
    "vocabulary_size": Bounds(1, 1_000_001),
    "max_unlabelled": Bounds(1),
    "labelled_first": Bounds(0),
    "rate_decay": Bounds(0),
    "momentum": Bounds(0, 1),
    "word_dropout": Bounds(0, 1),
    "vat_norm": Bounds(0, above=True),
    "cross_view_weight": Bounds(0, above=True),
    "cross_view_ramp": Bounds(0),
    "length_penalty": Bounds(0),
    "confidence": Bounds(0, 1),
    "mean_teacher": Bounds(0, 1),
    "lstm_size": Bounds(2),
    "beam_size": Bounds(1, 1001),
    "attention_dropout": Bounds(0, 1),
    "target_smoothing": Bounds(0, 1),
    "min_count": Bounds(1),
    "max_length": Bounds(1),
}


#: What fields that are not given are on the thesis's networks: table 4.1's, but for
#: unlabelled sentences, of which its code keeps 0.8, where the table drops 0.8.
PUBLISHED = {
    "optimizer": "sgd",
    "labelled_dropout": 0.5,
    "unlabelled_dropout": 0.2,
}
#: What they are on pretrained encoders.
PRETRAINED = {
    "optimizer": "adamw",
    "labelled_dropout": 0.1,
    "unlabelled_dropout": 0.1,
}
#: Fields that are arguments of all models.
OF_ALL_MODELS = (
    "views",
    "unlabelled_dropout",
    "label_smoothing",
    "word_dropout",
    "vat_norm",
    "hard_targets",
    "confidence",
    "cross_view_weight",
    "cross_view_ramp",
    "dtype",
)


@dataclasses.dataclass(frozen=True)
class CrossViewConfig:
    """Everything that decides what a run does, with the thesis's values (table 4.1).

    They are a tagger's values: for others see `ParsingConfig`, and `config.py` of the
    folders here.
    """

    output: str
    """Directory of the run; continues the run that it holds, if any."""
    preset: str = "base"
    """Size of the networks: tiny, small, base or large. Or what to take the encoder
    from: a tagger or parser of another run, by its directory; a pretrained encoder,
    which takes the LSTMs' place, by a trained preset's name (tiny_en) or its
    directory."""
    lstm_size: int | None = None
    """Hidden units of the first LSTM, if not the preset's; the second, projections and
    hidden layers have half as many (figure 4.5)."""
    freeze_encoder: bool = False
    """Whether that encoder stays as it is, and the primary module alone learns (table
    4.5)."""
    unlabelled: tuple[str, ...] = ()
    """Text without labels: files, globs, directories, their URLs, `tfds:NAME`,
    `hf-datasets:NAME` or `python-docs`. A line holds whole sentences; one that ends
    without a stop is passed over as a heading.
    Without any, the primary module learns alone: the supervised baseline."""
    in_words: bool = False
    """Whether each line of that text is a sentence, with spaces between its words."""
    on_bad_bytes: Literal["error", "skip"] = "error"
    """What to do with its lines that are not UTF-8."""
    on_bad_rows: Literal["error", "skip"] = "error"
    """What to do with its rows without a text."""
    text_column: str = "text"
    """The column or field of the text, in files that are no `.txt`, and data sets."""
    max_unlabelled: int = 1_000_000
    """Unlabelled sentences to use, at most; a million takes about 200 MB of memory."""
    labelled_first: int | None = None
    """Updates on labelled text alone, before --unlabelled has its turn. With any,
    auxiliary modules learn labels, too, by gradients that end at what they read and
    count in `clip_norm`. If not given, new networks have a fifth of --steps, because a
    module that has learned nothing yet teaches errors, or pulls at the states of all;
    encoders that are trained have 0, the thesis's."""
    cross_view_weight: float = 1.0
    """What the loss on what has no labels, a sum over all modules, counts beside that
    on labels. 1 is the thesis's."""
    cross_view_ramp: int = 0
    """Updates on what has no labels over which that weight rises linearly from 0; 0
    for the same weight throughout, the thesis's."""
    views: tuple[Literal[(*VIEWS, *BASELINES)], ...] = VIEWS
    """What the auxiliary modules see of a sentence. With `word_dropout` or `vat` alone
    the primary module learns from itself: the thesis's baselines (4.3.2)."""
    word_dropout: float = 0.1
    """The probability that the view `word_dropout` removes a word."""
    vat_norm: float = 0.5
    """The norm of the noise that the view `vat` adds to a sentence's embeddings, in
    units of their standard deviations."""
    hard_targets: bool = False
    """Whether the likeliest labels are learned, and not the probabilities."""
    confidence: float = 0.0
    """The least probability of an unlabelled word's likeliest label for it to be
    learned from."""
    mean_teacher: float = 0.0
    """Momentum of an average of the weights that makes the targets (Tarvainen and
    Valpola, 2017); 0 for the weights themselves. Give it the same
    `labelled_dropout` and `unlabelled_dropout`."""
    vocabulary_size: int = 50_000
    """Words with a vector of their own: the most frequent ones in all text, then the
    first ones of `word_vectors`. A pretrained encoder has its own vocabulary."""
    word_vectors: str | None = None
    """A file of word vectors in GloVe's format to start from, as wide as the preset's:
    96 in tiny, 300 in the others."""
    steps: int = 200_000
    """Updates, labelled and unlabelled ones."""
    batch_size: int = 64
    """Sentences in an update."""
    optimizer: Literal["sgd", "adamw"] | None = None
    """SGD with momentum, the thesis's; or AdamW with warm-up, linear decay and lower
    rates for lower layers, as the paper of a pretrained encoder fine-tunes it. If not
    given, what belongs to the preset."""
    learning_rate: float | None = None
    """Learning rate of the first update, 0.5 if not given; with AdamW the greatest one,
    the paper's if not given."""
    rate_decay: float = 0.005
    """With SGD, it falls to `learning_rate / (1 + rate_decay * sqrt(updates))`."""
    momentum: float = 0.9
    """Momentum of the gradients, with SGD."""
    clip_norm: float = 1.0
    """Largest global norm of the gradient; 0 for no limit. 1 is the thesis's code's."""
    ema: float = 0.998
    """Momentum of the average of the weights that is the result; 0 for none."""
    labelled_dropout: float | None = None
    """Dropout rate of words' vectors and LSTMs' outputs on labelled sentences, 0.5 if
    not given; of a pretrained encoder and its head on all sentences, 0.1."""
    unlabelled_dropout: float | None = None
    """Dropout rate on unlabelled sentences, 0.2, in the thesis's table 0.8; of the
    states that auxiliary modules read of a pretrained encoder, 0.1."""
    label_smoothing: float = 0.1
    """Label smoothing of the known tags."""
    dtype: Literal["float32", "mixed_bfloat16", "auto"] = "float32"
    """Precision; `auto` is bfloat16 where the hardware multiplies it faster. Weights,
    LSTMs' cells and losses stay float32."""
    seed: int = 0
    """Seed of initial weights, order of sentences and dropout."""
    interval: int = 1000
    """Updates between validations, each with a checkpoint."""
    wandb: str | None = None
    """Project of Weights & Biases that gets the settings and each row of metrics."""
    mlflow: str | None = None
    """Experiment of MLflow, or the address of its server or store, that gets them."""
    smoke: bool = False
    """Shrink everything, to see that it runs."""

    #: Fields that may differ when a run is continued.
    MAY_CHANGE = ("output", "wandb", "mlflow")
    #: Fields that name files, also recipes' fields: a continued run compares the
    #: files' content, since a project may have been moved.
    FILES = (
        *("unlabelled", "text_column", "word_vectors"),
        *("train", "dev", "test", "task_file"),
    )
    #: Fields that are arguments of the model, beside those that all models have.
    OF_MODEL = ()
    #: What it learns from.
    EXAMPLES = "sentences"
    #: The share of its updates that new networks have before text has its turn.
    LABELLED_SHARE = 0.2

    def shrunk(self):
        """Returns the `--smoke` form: the same path through the code, in seconds."""
        return dataclasses.replace(
            self,
            preset="tiny" if self.preset in PRESETS else self.preset,
            vocabulary_size=min(self.vocabulary_size, 500),
            max_unlabelled=min(self.max_unlabelled, 100),
            labelled_first=self.labelled_first and min(self.labelled_first, 4),
            steps=8,
            batch_size=8,
            interval=4,
        )

    def completed(self, pretrained):
        """Returns it with what belongs to the preset where a field is not given."""
        defaults = PRETRAINED if pretrained else PUBLISHED
        missing = {n: v for n, v in defaults.items() if getattr(self, n) is None}
        if self.labelled_first is None:
            is_trained = pretrained or self.preset not in PRESETS
            share = 0 if is_trained else self.LABELLED_SHARE
            missing["labelled_first"] = int(share * self.steps)
        from keras_corrupt.devices import precision  # help needs no Keras

        missing["dtype"] = precision.named(self.dtype)
        if self.optimizer == "adamw" and not pretrained:
            raise ValueError(
                "--optimizer adamw is how pretrained encoders are fine-tuned; --preset "
                f"{self.preset} is none. Leave it out, or name such a preset."
            )
        return dataclasses.replace(self, **missing)

    def files(self):
        """Returns split -> its files, of the fields that recipes have for them."""
        files_of = {split: getattr(self, split) for split in ("train", "dev", "test")}
        return {split: files for split, files in files_of.items() if files}

    def model_arguments(self):
        """Returns the fields that are arguments of the model."""
        fields = (*OF_ALL_MODELS, *self.OF_MODEL)
        arguments = {name: getattr(self, name) for name in fields}
        return arguments if self.unlabelled else arguments | {"views": ()}

    def check(self):
        """Raises a `ValueError` for a setting that cannot work; names the flag."""
        check_whole_numbers(self)
        check_bounds(vars(self), {**pretraining.BOUNDS, **BOUNDS})
        own = "task_file" if hasattr(self, "task_file") else "train"
        for name in ("dev", "test", "max_train"):
            if getattr(self, name, None) and not getattr(self, own):
                raise ValueError(
                    f"--{name} without --{own}: the command would learn the task that "
                    f"it makes itself. Give --{own}, too, or leave --{name} out."
                )
        if getattr(self, "train", None) and not self.dev:
            raise ValueError(
                "--train without --dev: nothing would say how well the model learns. "
                "Give files to evaluate on as --dev."
            )
        if self.unlabelled and not self.views:
            raise ValueError(
                "--views is empty: nothing would learn from --unlabelled. Leave that "
                "out for the supervised baseline."
            )
        if self.unlabelled and (self.labelled_first or 0) >= self.steps:
            raise ValueError(
                f"--labelled_first {self.labelled_first} leaves none of --steps "
                f"{self.steps} to --unlabelled. Give fewer, or leave that out."
            )
        if self.lstm_size and self.preset not in PRESETS:
            raise ValueError(
                f"--lstm_size is of new LSTMs; --preset {self.preset} is an encoder "
                "that was trained. Leave it out, or name a size."
            )
        if self.freeze_encoder and self.preset in PRESETS:
            raise ValueError(
                f"--freeze_encoder is for an encoder that was trained; --preset "
                f"{self.preset} is a size. Give the directory of a trained model."
            )
        if self.freeze_encoder and self.unlabelled:
            raise ValueError(
                "--freeze_encoder: what auxiliary modules learn from --unlabelled is "
                "of use to an encoder that learns. Leave one of the two out."
            )

    def too_little_memory(self):
        """Returns what a run says for whose updates memory does not suffice."""
        remedies = [
            f"--batch_size {max(self.batch_size // 2, 1)}",
            "a smaller --preset",
        ]
        if self.unlabelled and len(self.views) > 1:
            remedies.insert(1, "fewer --views")
        return (
            f"Memory does not suffice for an update of {self.batch_size} "
            f"{self.EXAMPLES}. Each of these takes less, in a new --output: "
            f"{', '.join(remedies)}."
        )

    def as_dict(self):
        """Returns the fields that a continued run must agree with, JSON-ready."""
        fields = dataclasses.asdict(self)
        fields = {name: fields[name] for name in fields if name not in self.MAY_CHANGE}
        return {n: [*v] if isinstance(v, tuple) else v for n, v in fields.items()}


@dataclasses.dataclass(frozen=True)
class ParsingConfig(CrossViewConfig):
    """The settings of a parser, where the thesis's values differ."""

    views: tuple[Literal[(*VIEW_PAIRS, *BASELINES)], ...] = VIEW_PAIRS
    """What the auxiliary modules see of a candidate edge's head and dependent. With
    `word_dropout` or `vat` alone the primary module learns from itself: the thesis's
    baselines (4.3.2)."""
    vat_norm: float = 1.0
    """The norm of the noise that the view `vat` adds to a sentence's embeddings, in
    units of their standard deviations."""
    label_smoothing: tyro.conf.Suppress[float] = 0.0  # the thesis's is of tags


@command("Run the same command again to go on.")
def main(config, make_task, description):
    """Runs a recipe from the command line.

    Args:
        config: The recipe's `CrossViewConfig`, or one with more fields; its fields
            become flags, its values their defaults.
        make_task: Function of the configuration that returns the task.
        description: Help text, the recipe's docstring.
    """
    config = tyro.cli(
        type(config), default=config, description=description, use_underscores=True
    )

    # Not above: help needs no Keras.
    from keras_corrupt.cross_view.run.cross_view_run import train

    with errors_in_a_line(config):
        config.check()
        config = config.shrunk() if config.smoke else config
        if train(make_task(config), config) is None:
            sys.exit(130)  # a shell's code for Ctrl-C: what follows should not run
