"""What a run starts from: its examples, those that are mixed in, and its model."""

from pathlib import Path
from typing import NamedTuple

from keras_corrupt import tokenizers
from keras_corrupt.data import (
    DatasetError,
    DatasetInfo,
    load_dataset_info,
    open_corpus,
    prepare_dataset,
)
from keras_corrupt.data.corpus import CorpusError
from keras_corrupt.data.info import INFO_FILE
from keras_corrupt.data.settings import settings_in
from keras_corrupt.data.splits import held_out_lines
from keras_corrupt.devices import precision
from keras_corrupt.models import Pretrainer
from keras_corrupt.presets import Preset
from keras_corrupt.presets.growth import with_vocabulary
from keras_corrupt.tokenizers.growth import extends
from keras_corrupt.training import init_from


class Examples(NamedTuple):
    """The examples of a run.

    Attributes:
        info: The corpus's examples.
        mixed: Examples that are mixed in: a list of `Mixed`.
    """

    info: DatasetInfo
    mixed: list

    @property
    def fingerprints(self):
        """What a continued run must agree with: what it is -> fingerprint."""
        return {
            "vocabulary": self.info.tokenizer_fingerprint,
            "text": self.info.fingerprint,
            **{f"text of --mix {m.name}": m.info.fingerprint for m in self.mixed},
        }


class Mixed(NamedTuple):
    """A corpus that is mixed in: its name, its examples, their fraction of all."""

    name: str
    info: DatasetInfo
    fraction: float


def prepare(config, output):
    """Checks `--init_from`; finds or makes the examples: returns `Examples`."""
    check_mix(config)
    cls = config.model_class
    tokenizer, kind, vocabulary = None, config.tokenizer, config.vocabulary
    flags = {
        "lowercase": config.lowercase,
        "strip_accents": config.strip_accents,
        "language_neutral": config.language_neutral,
    }
    if config.init_from:
        preset = Preset.open(config.init_from, Pretrainer)
        encoder, tokenizer = preset.encoder, preset.tokenizer
        if tokenizer is not None:
            kind, flags = tokenizer.kind, tokenizer.flags
            vocabulary = preset.directory / "tokenizer.json"
        elif config.grow_vocabulary:
            raise ValueError(
                f"--init_from {config.init_from} has no tokenizer, so no vocabulary "
                "can grow. Leave out --grow_vocabulary."
            )
        elif not (config.vocabulary or config.data):
            raise ValueError(
                f"--init_from {config.init_from} has no tokenizer. Give that which its "
                "weights were trained with: --vocabulary."
            )
        main = next(iter(cls.network_arguments))
        positions = {**encoder, **config.objective.get(main, {})}["max_length"]
        if config.sequence_length > positions:
            raise ValueError(
                f"--sequence_length {config.sequence_length} is longer than the "
                f"{positions} positions of --init_from {config.init_from}. Shorten it, "
                f"or set --{main}.max_length: new positions start as copies."
            )
    if config.data:
        info = load_dataset_info(config.data)
    else:
        info = prepare_corpus(
            config,
            config.corpus,
            output / "data",
            vocabulary=vocabulary,
            tokenizer=kind,
            vocabulary_size=config.vocabulary_size,
            grow_vocabulary=config.grow_vocabulary,
            **flags,
        )
    saved = tokenizers.load(info.directory)
    if tokenizer is not None and not extends(saved, tokenizer):
        raise ValueError(
            f"--data {config.data} was made with another vocabulary than --init_from "
            f"{config.init_from}. Prepare it anew with {vocabulary}."
        )
    if tokenizer is None and config.init_from:
        limit = encoder["vocabulary_size"]
        if saved.vocabulary_size > limit:
            raise ValueError(
                f"--init_from {config.init_from} knows {limit:,} tokens, and the "
                f"vocabulary has {saved.vocabulary_size:,}: it is another one's. Give "
                "that which its weights were trained with: --vocabulary, or --data."
            )
    return Examples(info, prepare_mix(config, output, info, saved))


def check_mix(config):
    """Checks, before the corpus is prepared, that what `--mix` names can be read.

    Raises:
        CorpusError: A corpus is not there, or its beginning cannot be read.
        DatasetError: All of its documents would be in one split.
        ValueError: Several processes would have to prepare it.
    """
    for name, _ in config.mix:
        if is_prepared(name):
            continue
        if config.coordinator:
            raise ValueError(
                f"--mix {name}: several processes need examples that each can read. "
                "Make them once with python -m keras_corrupt.data prepare."
            )
        try:
            corpus = open_corpus(
                name,
                documents=config.documents,
                on_bad_bytes=config.on_bad_bytes,
                on_bad_rows=config.on_bad_rows,
                text_column=config.text_column,
            )
            fraction = config.validation_fraction
            held_out_lines(corpus, fraction=fraction, seed=config.seed)
        except (CorpusError, DatasetError) as error:
            raise type(error)(f"--mix {name}: {error}") from error


def check_start(config, model):
    """Checks `--init_from`, and that a generator which it lacks is trained first.

    Args:
        config: A `PretrainConfig`.
        model: A model of its class.

    Raises:
        ValueError: A model cannot start from it, or a new generator would be used
            untrained.
    """
    if not config.init_from:
        return
    cls = type(model)
    preset = init_from.check(config.init_from, cls, config.preset, config.objective)
    lacks = preset.model_class is not cls or not preset.has("generator")
    generator = model.networks.get("generator")
    learns = generator is not None and generator.trainable_variables
    if lacks and learns and config.generator_steps is None:
        raise ValueError(
            f"--init_from {config.init_from} has no generator for {cls.__name__}. Say "
            "with --generator_steps how many of the first updates train a new one "
            "alone, of the size --preset; 0 for none."
        )
    # What does not fit together shows now, before a corpus is prepared.
    init_from.load(config.init_from, cls, config.preset, **config.objective)


def prepare_mix(config, output, info, tokenizer):
    """Finds or makes the examples of `--mix`, with the corpus's own vocabulary.

    Args:
        config: A `PretrainConfig`.
        output: The run's directory, a `Path`.
        info: The `DatasetInfo` of the corpus.
        tokenizer: Its tokenizer.

    Returns:
        A list of `Mixed`.

    Raises:
        DatasetError: Examples that were made before have another vocabulary.
    """
    mixed = []
    for number, (name, fraction) in enumerate(config.mix, 1):
        if is_prepared(name):
            other = load_dataset_info(name)
            if other.tokenizer_fingerprint != info.tokenizer_fingerprint:
                raise DatasetError(
                    f"--mix {name}: its examples were made with another vocabulary "
                    f"than the corpus's examples. Give its text, or prepare it with "
                    f"{info.directory / 'tokenizer.json'}."
                )
        else:
            other = prepare_corpus(
                config,
                name,
                output / f"mix_{number}",
                vocabulary=info.directory / "tokenizer.json",
                tokenizer=tokenizer.kind,
                **tokenizer.flags,
            )
        mixed.append(Mixed(name, other, fraction))
    return mixed


def is_prepared(name):
    """Whether a directory of examples, made before, has this name."""
    return (Path(name) / INFO_FILE).exists()


def prepare_corpus(config, corpus, directory, **vocabulary):
    """Makes examples as a run wants them: see `prepare_dataset`."""
    made_with = {
        **settings_in(config),
        "sequence_length": config.sequence_length,
        "seed": config.seed,
        "grow_vocabulary": 0,
        **vocabulary,
    }
    return prepare_dataset(corpus, directory, workers=config.workers, **made_with)


def build(config, info):
    """Returns the model for the examples that a `DatasetInfo` describes."""
    cls = config.model_class
    saved = tokenizers.load(info.directory)
    dtype = precision.named(config.dtype)
    options = {"seed": config.seed, "dtype": dtype, **config.objective}
    if config.init_from:
        model = init_from.load(config.init_from, cls, config.preset, saved, **options)
        if model.tokenizer.fingerprint != saved.fingerprint:
            model = with_vocabulary(model, saved)
    else:
        model = cls.from_preset(config.preset, tokenizer=saved, **options)
    model.use_unigrams(info.unigrams())
    return model
