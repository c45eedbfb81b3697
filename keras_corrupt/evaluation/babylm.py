"""Runs by the rules of the BabyLM challenge, which counts words (arXiv 2502.10645)."""

import dataclasses
import sys
import tempfile
from pathlib import Path

from keras_corrupt.commands.bounds import Bounds, check_bounds
from keras_corrupt.training.config import PretrainConfig

BOUNDS = dict.fromkeys(("words", "corpus_words", "mark"), Bounds(1))


@dataclasses.dataclass(frozen=True)
class BabyLMConfig(PretrainConfig):
    """A pretraining run whose length is a number of words.

    `words` and `mark` decide about `steps`, `interval` and `keep_presets`. The run
    validates at each mark. It keeps a preset at each of the first ten marks, then at
    each tenth until the hundredth, then at each hundredth.
    """

    words: int = 100_000_000
    """Words to train on; each counts in every pass over the corpus."""
    corpus_words: int = 10_000_000
    """Words that the track allows the corpus."""
    mark: int = 1_000_000
    """Words from one mark to the next."""

    def keeps(self, step):
        number, rest = divmod(step, self.interval)
        return not rest and len(str(number).rstrip("0")) == 1

    def name_of(self, step):
        """Returns the challenge's name for the model after an update.

        >>> BabyLMConfig("Electra", "tiny", "run", interval=500).name_of(10_000)
        'chck_20M'
        """
        words = step // self.interval * self.mark
        millions, rest = divmod(words, 1_000_000)
        return f"chck_{words}" if rest else f"chck_{millions}M"


def babylm(config):
    """Trains a model on a number of words, and exports the presets that it keeps.

    Without `data` the run makes its examples in a directory beside `output`, whose name
    ends in `_data`. The exported models are directories of Hugging Face's format with
    the names that the challenge's evaluation reads, `hugging_face/chck_1M` and so on.

    Args:
        config: A `BabyLMConfig`.

    Returns:
        The model, or `None` if the user stopped the run.

    Raises:
        ValueError: A setting cannot work. `pretrain` has more errors.
    """
    from keras_corrupt.convert import convert
    from keras_corrupt.training.pretraining import pretrain

    if config.smoke:
        return pretrain(config)
    config = with_steps(config)
    check_export(config)
    model = pretrain(config)
    if model is None:
        return None
    exported = Path(config.output, "hugging_face")
    for preset in sorted(Path(config.output, "presets").glob("step-*")):
        target = exported / config.name_of(int(preset.name.removeprefix("step-")))
        if not target.exists():
            convert(preset, target, to="hugging_face")
    print(f"\nFor the challenge's evaluation: {exported}")
    return model


def check_export(config):
    """Raises a `ValueError` if Hugging Face's classes cannot hold a run's model."""
    from keras_corrupt.convert import hugging_face
    from keras_corrupt.convert.options import Options
    from keras_corrupt.data import load_dataset_info
    from keras_corrupt.training.starting import build

    model = build(config, load_dataset_info(config.data))
    with tempfile.TemporaryDirectory() as directory:
        hugging_face.write(Path(directory), model, Options())


def with_steps(config):
    """Returns the configuration with the updates that its words take.

    Args:
        config: A `BabyLMConfig`. Examples are made if it names none.

    Raises:
        ValueError: The words end at no mark, another setting contradicts them, or the
            words of the examples are not known.
    """
    from keras_corrupt.data import load_dataset_info, prepare_dataset
    from keras_corrupt.data.settings import settings_in

    check_bounds(vars(config), BOUNDS)
    for name in ("fill_rows", "mix"):
        if getattr(config, name):
            raise ValueError(f"--{name}: leave it out, or nobody knows a step's words.")
    for name in ("steps", "interval", "keep_presets"):
        if getattr(config, name) != getattr(BabyLMConfig, name):
            raise ValueError(f"--{name}: leave it out, --words and --mark decide it.")
    if config.words % config.mark:
        raise ValueError(
            f"--words {config.words} must be a multiple of --mark {config.mark}."
        )
    config.check()
    if not config.data:
        examples = f"{config.output}_data"
        prepare_dataset(
            config.corpus,
            examples,
            workers=config.workers,
            sequence_length=config.sequence_length,
            seed=config.seed,
            **settings_in(config),
        )
        config = dataclasses.replace(config, data=examples)
    info = load_dataset_info(config.data)
    train, held_out = info.train, info.validation
    if train.words is None:
        raise ValueError(
            f"--data {config.data}: an older version made these examples and counted "
            "no words. Prepare them again."
        )
    total = train.words + held_out.words
    print(f"The corpus has {total:,} words, {held_out.words:,} of them held out.")
    if total > config.corpus_words:
        print(
            f"Warning: the track allows {config.corpus_words:,}. Take less text, or "
            "name the words of your track: --corpus_words.",
            file=sys.stderr,
        )
    words_per_update = train.words / train.examples * config.batch_size
    interval = max(1, round(config.mark / words_per_update))
    steps = interval * (config.words // config.mark)
    return dataclasses.replace(
        config,
        interval=interval,
        steps=steps,
        warmup_steps=min(config.warmup_steps, steps // 10),
    )
