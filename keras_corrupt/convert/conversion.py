"""From any format to any other one."""

from typing import NamedTuple

import keras

from keras_corrupt.convert import (
    google_tf1,
    hugging_face,
    keras_hub,
    litert,
    model_garden,
    onnx,
)
from keras_corrupt.convert.card import model_card
from keras_corrupt.convert.check import check as compare
from keras_corrupt.convert.files import read_json
from keras_corrupt.convert.hubs import local_copy
from keras_corrupt.convert.options import Options
from keras_corrupt.encoders.text_model import TextModel
from keras_corrupt.files.whole_directory import recovered, whole_directory
from keras_corrupt.models import Pretrainer
from keras_corrupt.models.one_state import warn_of_one_state
from keras_corrupt.presets import Preset
from keras_corrupt.presets.directory import write
from keras_corrupt.presets.locations import trained_presets

#: Format -> its module.
TARGETS = {
    "hugging_face": hugging_face,
    "keras_hub": keras_hub,
    "model_garden": model_garden,
    "onnx": onnx,
    "litert": litert,
}
#: Formats of libraries whose only gelu is its tanh approximation.
OF_TANH_GELU = ("keras_hub", "model_garden")
#: The first that recognises a path reads it.
SOURCES = (hugging_face, keras_hub, model_garden, google_tf1)
OURS = "keras_corrupt"


class Converted(NamedTuple):
    """The result of a conversion.

    Attributes:
        model: The model, ours.
        untrained_networks: Names of its networks that the source does not have.
        difference: The largest between its outputs and the written model's outputs;
            `None` if that was not looked at.
    """

    model: keras.Model
    untrained_networks: tuple
    difference: float | None


def convert(
    source,
    target,
    to=OURS,
    generator=None,
    approximate_gelu=None,
    check=False,
    sentence_transformers=False,
):
    """Writes a model in another format, whole or not at all.

    Args:
        source: A preset, directory or name, or what another library wrote: a directory,
            the prefix of a TensorFlow checkpoint, or an address, `hf://owner/name` or
            `kaggle://...`.
        target: A new directory.
        to: `"keras_corrupt"`, a preset, or a key of `TARGETS`.
        generator: Where ELECTRA's generator is, if not with the discriminator.
        approximate_gelu: Whether the encoder has gelu's tanh approximation, where the
            source does not say; or gets it, where the target has nothing else.
        check: Whether what was written is loaded by its own library, if that is
            installed, and its outputs compared.
        sentence_transformers: Whether a directory of Hugging Face's gets the files of
            sentence-transformers, too. A `SentenceEncoder`'s always does.

    Returns:
        `Converted`.

    Raises:
        ValueError: The source cannot be read, the target exists or cannot hold it, or
            the outputs differ.
    """
    if to not in (OURS, *TARGETS):
        raise ValueError(f"`to` must be {OURS!r} or one of {[*TARGETS]}; got {to!r}.")
    if sentence_transformers and to != "hugging_face":
        raise ValueError('`sentence_transformers` is for to="hugging_face" alone.')
    difference, target = None, recovered(target)
    if target.exists() or target.is_symlink():
        raise ValueError(f"{target} exists. Give a new directory, or remove it.")
    with whole_directory(target) as temporary:
        generator = generator and local_copy(generator)
        options = Options(generator, approximate_gelu)
        path = local_copy(trained_presets().get(source, source))
        if generator:
            check_generator(generator, path)
        # A library computes in float32, whatever the model was trained in.
        dtype = {} if to == OURS else {"dtype": "float32"}
        model, untrained = read(path, options, **dtype)
        if to == OURS:
            write(temporary, model, untrained=untrained)
        else:
            options = options._replace(
                untrained_networks=untrained,
                sentence_transformers=sentence_transformers,
            )
            TARGETS[to].write(temporary, model, options)
            if check:
                if to not in OF_TANH_GELU:
                    options = options._replace(approximate_gelu=None)
                difference = compare(model, temporary, TARGETS[to], options)
            card = model_card(model, path, to, target.name, temporary)
            (temporary / "README.md").write_text(card, encoding="utf-8")
    return Converted(model, untrained, difference)


def check_generator(generator, source):
    """Raises a `ValueError` if a source has no use for `generator`, or it is none."""
    if not (generator / "config.json").is_file():
        raise ValueError(
            f"generator={str(generator)!r} holds no config.json. Give the directory of "
            "Hugging Face's generator."
        )
    of_hugging_face = hugging_face.recognises(source)
    config = read_json(source / "config.json") if of_hugging_face else {}
    if config.get("model_type") != "electra":
        raise ValueError(
            f"generator={str(generator)!r} is for a discriminator of Hugging Face's "
            f"ELECTRA, and {source} is none. Leave it out."
        )


def read(path, options, **overrides):
    """Reads a model of any format.

    Args:
        path: A `Path`.
        options: `Options`.
        overrides: Constructor arguments of a preset to change.

    Returns:
        The model, and the names of its networks that the source does not have.

    Raises:
        ValueError: It cannot be read.
    """
    try:
        for module in SOURCES:
            if module.recognises(path):
                model, untrained = module.read(path, options)
                if isinstance(model, Pretrainer):
                    warn_of_one_state(model, path)
                return model, untrained
    except Exception as error:  # foreign content makes whatever error it likes
        text = " ".join(str(error).split())[:500]
        named = text if str(path) in text else f"{path}: {text}"
        raise ValueError(named) from error
    model = Preset.open(path, TextModel).load(**overrides)
    return model, model.untrained_networks
