"""Reading of somebody's files."""

import json

import safetensors

from keras_corrupt import tokenizers
from keras_corrupt.convert.weights import Weights
from keras_corrupt.presets.weights import open_checked
from keras_corrupt.tokenizers.reading import read_text, read_vocabulary

_MAX_JSON_BYTES = 1 << 22


def read_json(path):
    """Reads a file that holds a JSON object.

    Raises:
        ValueError: It holds something else, or is not there.
    """
    try:
        content = json.loads(read_text(path, _MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object.")
    return content


def config_has(path, entry):
    """Whether a directory has a `config.json` with an entry."""
    try:
        return entry in read_json(path / "config.json")
    except ValueError:
        return False


def sizes_of(config, names, path):
    """Returns whole numbers of a file's `config`: our name -> number.

    Args:
        config: Dict.
        names: Our name -> theirs.
        path: The file, for errors.

    Raises:
        ValueError: One is missing or is no whole number of 1 or more.
    """
    for name in names.values():
        if type(config.get(name)) is not int or config[name] < 1:
            raise ValueError(
                f"{path}: {name} is {config.get(name)!r}, not a whole number from 1."
            )
    return {ours: config[theirs] for ours, theirs in names.items()}


def safetensors_weights(path):
    """Returns the `Weights` of a safetensors file.

    Raises:
        ValueError: It is no such file.
    """
    try:
        with open_checked(path) as file:
            shapes = {n: tuple(file.get_slice(n).get_shape()) for n in file.keys()}
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error

    def read(name):
        with open_checked(path) as file:
            return file.get_tensor(name)

    return Weights(str(path), shapes, read)


def find_tokenizer(directory):
    """Reads the tokenizer of a directory: `tokenizer.json`, or else `vocab.txt`.

    Where `tokenizer_config.json` does not say whether text is lower-cased and loses its
    accents, it is unless the vocabulary has words with capitals.

    Args:
        directory: A `Path`.

    Returns:
        The tokenizer, or `None` if there is none.

    Raises:
        ValueError: It is none that this package has.
    """
    if (directory / "tokenizer.json").exists():
        return tokenizers.from_file(directory / "tokenizer.json")
    path = directory / "vocab.txt"
    if not path.exists():
        return None
    config = {}
    if (directory / "tokenizer_config.json").exists():
        config = read_json(directory / "tokenizer_config.json")
    lowercase = config.get("do_lower_case")
    if lowercase is None:
        words = filter(str.isalpha, map(str.strip, read_vocabulary(path)))
        lowercase = all(word == word.lower() for word in words)
    accents = config.get("strip_accents")
    return tokenizers.from_file(
        path,
        lowercase=bool(lowercase),
        strip_accents=bool(lowercase if accents is None else accents),
    )
