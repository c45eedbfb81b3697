"""From any format to any other one."""

from pathlib import Path

from keras_corrupt.convert import hugging_face
from keras_corrupt.convert.card import model_card
from keras_corrupt.convert.files import new_directory
from keras_corrupt.downstream.model import load_preset
from keras_corrupt.models import preset_directory

#: Format -> its module. The first that recognises a directory reads it.
FORMATS = {"hugging_face": hugging_face}
OURS = "keras_corrupt"


def convert(source, target, to=OURS, generator=None, approximate_gelu=None):
    """Writes a model in another format, whole or not at all.

    Args:
        source: A preset, or what another library wrote: a directory, the prefix of a
            TensorFlow checkpoint, or an address, `hf://owner/name` or `kaggle://...`.
        target: A new directory.
        to: `"keras_corrupt"`, a preset, or a key of `FORMATS`.
        generator: Where ELECTRA's generator is, if not with the discriminator.
        approximate_gelu: Whether the encoder has gelu's tanh approximation, where the
            source does not say, or the target has only one of the two.

    Returns:
        The model.

    Raises:
        ValueError: The source cannot be read, the target exists or cannot hold it.
    """
    if to not in (OURS, *FORMATS):
        raise ValueError(f"`to` must be {OURS!r} or one of {[*FORMATS]}; got {to!r}.")
    with new_directory(target) as temporary:
        model, left_out = read(source, generator)
        if to == OURS:
            temporary.rmdir()
            preset_directory.write(temporary, model, left_out=left_out)
        else:
            FORMATS[to].write(temporary, model, left_out)
            card = model_card(model, source, to)
            (temporary / "README.md").write_text(card, encoding="utf-8")
    return model


def read(source, generator=None):
    """Reads a model of any format.

    Args:
        source: See `convert`.
        generator: See there.

    Returns:
        The model, and the names of its networks that the source does not have.

    Raises:
        ValueError: It cannot be read.
    """
    path = Path(source)
    for module in FORMATS.values():
        if module.recognises(path):
            try:
                return module.read(path, generator and Path(generator))
            except Exception as error:  # foreign content makes whatever error it likes
                text = " ".join(str(error).split())[:500]
                named = text if str(path) in text else f"{path}: {text}"
                raise ValueError(named) from error
    model = load_preset(path)
    lacks = [n for n in model.networks if not preset_directory.has_network(path, n)]
    return model, tuple(lacks)
