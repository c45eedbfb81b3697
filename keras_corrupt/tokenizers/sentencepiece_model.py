"""SentencePiece's `.model` files, a protocol buffer, as engines.

Only what a unigram model needs is read: the pieces, and how text is normalised. The
field numbers come from `sentencepiece_model.proto`.
"""

import itertools
import struct
from collections.abc import Iterable, Iterator

import tokenizers
from tokenizers import normalizers

from keras_corrupt.tokenizers.roles import ROLES
from keras_corrupt.tokenizers.vocabulary import MAX_TOKENS

# ModelProto, and what its fields hold.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_PIECE, _SCORE, _TYPE = 1, 2, 3
_MODEL_TYPE, _SPACE_IS_SUFFIX = 3, 24
_CHARACTER_MAP, _DUMMY_PREFIX, _NO_EXTRA_SPACE, _ESCAPE_SPACE = 2, 3, 4, 5
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_MODEL_TYPES = {1: "unigram", 2: "BPE", 3: "word", 4: "character"}
_SPACE = "▁"
_SYMBOL_SCORE = -0.1


def engine_of_model(content: bytes) -> tokenizers.Tokenizer:
    """Makes an engine that encodes as SentencePiece does with a model file.

    Special tokens in a text are the exception: they are ordinary text, also where the
    model has them as user-defined symbols. Two rarities differ, as with all users of
    the `tokenizers` library: a character whose marks bring it to more than five bytes
    is normalised part by part (half-width kana with a sound mark), and with byte
    pieces the text `<0x41>` is the byte.

    Args:
        content: The bytes of the file.

    Returns:
        The engine, with the ids that SentencePiece gives.

    Raises:
        ValueError: If it is no such file, or one whose ids cannot be had exactly.
    """
    try:
        message = list(itertools.islice(_fields(content), MAX_TOKENS))
        if len(message) == MAX_TOKENS:
            raise ValueError(f"{MAX_TOKENS:,} pieces or more")
        pieces = [_piece(value) for field, value in message if field == _PIECES]
        trainer, normalizer = (
            dict(
                _fields(b"".join(value for field, value in message if field == section))
            )
            for section in (_TRAINER, _NORMALIZER)
        )
    except (IndexError, KeyError, struct.error, TypeError, ValueError) as error:
        raise ValueError(f"not a SentencePiece model ({error!r}).") from error
    if not pieces:
        raise ValueError("not a SentencePiece model: it has no pieces.")
    model_type = _MODEL_TYPES.get(trainer.get(_MODEL_TYPE, 1))
    if model_type != "unigram":
        raise ValueError(
            f"a SentencePiece model of the kind {model_type}. Only unigram models give "
            "the same ids here: SentencePiece joins pairs by score and place, which "
            "the tokenizers library's merges cannot express. Train a unigram model, "
            "or give a tokenizer.json."
        )
    if trainer.get(_SPACE_IS_SUFFIX) or not normalizer.get(_ESCAPE_SPACE, 1):
        raise ValueError(
            "a SentencePiece model that writes spaces behind words or not at all, "
            f"which is not supported; train it with the space as {_SPACE} before words."
        )
    types = [kind for _, _, kind in pieces]
    if types.count(_UNKNOWN) != 1:
        raise ValueError("a SentencePiece model without exactly one unknown piece.")
    # A user-defined symbol wins against the pieces that spell it, as there.
    scored = [
        (piece, _SYMBOL_SCORE if kind == _USER_DEFINED else score)
        for piece, score, kind in pieces
    ]
    model = tokenizers.models.Unigram(
        scored, types.index(_UNKNOWN), byte_fallback=_BYTE in types
    )
    engine = tokenizers.Tokenizer(model)
    engine.normalizer = _normalizer(normalizer)
    symbols = {piece for piece, _, kind in pieces if kind == _USER_DEFINED}
    usual = {name for names in ROLES.values() for name in names}
    _check_symbols(sorted(symbols - usual), engine.normalizer)
    engine.decoder = tokenizers.decoders.Metaspace(_SPACE)
    # What SentencePiece does not find in text.
    hidden = [p for p, _, kind in pieces if kind in (_UNKNOWN, _CONTROL, _UNUSED)]
    engine.add_special_tokens(
        [tokenizers.AddedToken(piece, special=True) for piece in hidden]
    )
    return engine


def _check_symbols(symbols: Iterable[str], normalizer) -> None:
    """Refuses symbols that SentencePiece alone keeps from being normalised."""
    for symbol in symbols:
        if not normalizer.normalize_str(f".{symbol}.").endswith(f".{symbol}."):
            raise ValueError(
                f"a SentencePiece model with the user-defined symbol {symbol!r}, which "
                "its own normalisation changes; this is not supported."
            )


def _normalizer(spec: dict):
    steps = []
    if spec.get(_CHARACTER_MAP):
        steps.append(normalizers.Precompiled(spec[_CHARACTER_MAP]))
    if spec.get(_NO_EXTRA_SPACE, 1):
        steps += [
            normalizers.Replace(tokenizers.Regex("^ +| +$"), ""),
            normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
        ]
    if spec.get(_DUMMY_PREFIX, 1):
        steps.append(normalizers.Prepend(_SPACE))
    return normalizers.Sequence([*steps, normalizers.Replace(" ", _SPACE)])


def _piece(message: bytes) -> tuple[str, float, int]:
    fields = dict(_fields(message))
    (score,) = struct.unpack("<f", fields.get(_SCORE, bytes(4)))
    return fields[_PIECE].decode("utf-8"), score, fields.get(_TYPE, _NORMAL)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the number and the value of each field of a protocol buffer."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while place < len(message):
        field, wire_type = divmod(varint(), 8)
        if wire_type == 0:
            yield field, varint()
            continue
        size = {1: 8, 5: 4}.get(wire_type)
        if wire_type == 2:
            size = varint()
        if size is None or place + size > len(message):
            raise ValueError(f"field {field} is malformed")
        yield field, message[place : place + size]
        place += size
