"""Tokenizers from files: those that were saved, and vocabularies from elsewhere."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from keras_corrupt.tokenizers.byte_bpe import ByteBPETokenizer
from keras_corrupt.tokenizers.fingerprints import sha256
from keras_corrupt.tokenizers.reading import (
    parse_engine,
    read_bytes,
    read_text,
    read_vocabulary,
)
from keras_corrupt.tokenizers.roles import (
    CONFIG_NAMES,
    ROLES,
    special_tokens,
)
from keras_corrupt.tokenizers.sentencepiece_model import engine_of_model
from keras_corrupt.tokenizers.tokenizer import (
    CONFIG_FILE,
    SETTINGS_FILE,
    Tokenizer,
)
from keras_corrupt.tokenizers.unigram import UnigramTokenizer
from keras_corrupt.tokenizers.wordpiece import WordPieceTokenizer

#: Kind -> class.
KINDS = {
    cls.kind: cls for cls in (WordPieceTokenizer, ByteBPETokenizer, UnigramTokenizer)
}
# By the names of the library's models.
_CLASSES = {
    "WordPiece": WordPieceTokenizer,
    "BPE": ByteBPETokenizer,
    "Unigram": UnigramTokenizer,
}
_MAX_SETTINGS_BYTES = 1 << 16


def load(directory: str | os.PathLike) -> Tokenizer:
    """Reads what `Tokenizer.save` wrote, of whichever kind.

    Args:
        directory: A directory with a saved tokenizer, such as a preset or a prepared
            data set.

    Returns:
        The tokenizer.

    Raises:
        ValueError: If a file is missing or malformed, or the vocabulary was changed.
    """
    settings = _read_settings(Path(directory))
    tokenizer = KINDS[settings["kind"]].from_saved(directory, settings)
    is_now = {
        "vocabulary_sha256": sha256(tokenizer.vocabulary),
        "fingerprint": tokenizer.fingerprint,
    }
    if any(settings[name] != value for name, value in is_now.items()):
        raise ValueError(
            f"{directory}: this is not the vocabulary that was saved. Restore the "
            "files that were saved together, or read a vocabulary from elsewhere "
            "with from_file."
        )
    return tokenizer


def from_file(
    path: str | os.PathLike, roles: Mapping[str, str] | None = None, **flags: bool
) -> Tokenizer:
    """Makes a tokenizer of a vocabulary from elsewhere.

    The file's name tells what it is: a Hugging Face `tokenizer.json` (any `.json`), a
    SentencePiece `.model` of the unigram kind, or else a `vocab.txt` of WordPiece.
    Special tokens are found by their usual names, or by the `tokenizer_config.json`
    that lies beside a `tokenizer.json`.

    Args:
        path: The file. The `tokenizer.json` of a saved tokenizer stands for it.
        roles: Role -> special token, where this is not enough; see `Tokenizer`. One
            that the vocabulary lacks is added at its end.
        flags: For a `vocab.txt` `WordPieceTokenizer`'s flags. The other files tell
            what they do to text, and a flag is an error if it is not that.

    Returns:
        The tokenizer.

    Raises:
        ValueError: If the file is none of these, or lacks a special token, or a flag
            is not what it does.
    """
    path = Path(path)
    roles = dict(roles or {})
    try:
        if path.suffix == ".json":
            tokenizer = _from_json(path, roles)
        elif path.suffix == ".model":
            engine = engine_of_model(read_bytes(path))
            tokenizer = UnigramTokenizer(_with_tokens(engine, roles), roles)
        else:
            # As BERT's loader does; a token of white space alone keeps its line.
            vocabulary = [line.strip() or line for line in read_vocabulary(path)]
            added = [name for name in roles.values() if name not in vocabulary]
            tokenizer = WordPieceTokenizer([*vocabulary, *added], **flags, roles=roles)
        if tokenizer.vocabulary_size == len(tokenizer.special_ids):
            raise ValueError("it holds special tokens only, so no text has tokens.")
    except ValueError as error:
        named = str(error) if str(path) in str(error) else f"{path}: {error}"
        raise ValueError(named) from error
    is_so = tokenizer.flags
    if any(is_so.get(name, False) != value for name, value in flags.items()):
        own = ", ".join(f"{name}={value}" for name, value in is_so.items())
        raise ValueError(f"{path}: what it does to text is {own}. Pass these flags.")
    return tokenizer


def _from_json(path: Path, roles: dict[str, str]) -> Tokenizer:
    if (path.parent / SETTINGS_FILE).exists():
        tokenizer = load(path.parent)
        if others := roles.items() - tokenizer.roles.items():
            raise ValueError(
                f"its special tokens are {tokenizer.roles}, with which it was saved, "
                f"not {dict(others)}. Leave out `roles`."
            )
        return tokenizer
    engine = parse_engine(read_text(path), path)
    model = type(engine.model).__name__
    if model not in _CLASSES:
        raise ValueError(
            f"its model is {model}; those supported are {', '.join(_CLASSES)}."
        )
    named = _configured_roles(path.with_name(CONFIG_FILE), engine) | roles
    cls = _CLASSES[model]
    engine = _with_tokens(engine, named)
    return cls.from_engine(engine, named)


def _with_tokens(engine, roles: Mapping[str, str]):
    """Adds the tokens that the vocabulary lacks, at its end."""
    ordered = [roles[role] for role in ROLES if role in roles]
    engine.add_special_tokens(special_tokens(ordered, engine))
    return engine


def _configured_roles(path: Path, engine) -> dict[str, str]:
    """Reads the special tokens that a `tokenizer_config.json` names."""
    if not path.exists():
        return {}
    config = _parse_object(read_text(path), path)
    tokens = {role: config.get(name) for role, name in CONFIG_NAMES.items()}
    tokens = {
        role: token.get("content") if isinstance(token, dict) else token
        for role, token in tokens.items()
    }
    return {
        role: token
        for role, token in tokens.items()
        if isinstance(token, str) and engine.token_to_id(token) is not None
    }


def _read_settings(directory: Path) -> dict:
    path = directory / SETTINGS_FILE
    if not path.exists():
        raise ValueError(f"{path}: missing. A tokenizer's save(directory) writes it.")
    settings = _parse_object(read_text(path, _MAX_SETTINGS_BYTES), path)
    if not _well_formed(settings):
        raise ValueError(
            f"{path}: not the settings of a tokenizer of this project. Read a "
            "vocabulary from elsewhere with from_file."
        )
    return settings


def _well_formed(settings: dict) -> bool:
    def is_dict(value, names, of):
        named = isinstance(value, dict) and value.keys() == set(names)
        return named and all(isinstance(entry, of) for entry in value.values())

    kind = settings.get("kind")
    return (
        isinstance(kind, str)
        and kind in KINDS
        and is_dict(settings.get("flags"), KINDS[kind].flag_names, bool)
        and is_dict(settings.get("roles"), ROLES, str)
        and isinstance(settings.get("vocabulary_sha256"), str)
        and isinstance(settings.get("fingerprint"), str)
    )


def _parse_object(text: str, path: Path) -> dict:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: not a JSON object.")
    return content
