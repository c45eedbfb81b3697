"""WordPiece tokenizer: training, encoding, decoding, packing and storage."""

import hashlib
import json
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from keras_corrupt.tokenizers.vocabulary import train_vocabulary

UNK = "[UNK]"
SPECIAL_TOKENS = ("[PAD]", UNK, "[CLS]", "[SEP]", "[MASK]")
_FLAGS = ("lowercase", "strip_accents", "language_neutral")
_MAX_TOKENIZER_JSON_BYTES = 1 << 16


class WordPieceTokenizer:
    """Splits text into the word pieces of a vocabulary, as BERT does.

    Text is normalised (control characters removed, white space unified; lower-cased
    and stripped of accents if asked), split at white space and punctuation, and each
    word is cut greedily into the longest pieces known; pieces inside a word carry the
    prefix `##`. A word that cannot be cut becomes `[UNK]`. Special tokens written in
    the text (`"[MASK]"`) are ordinary text.

    Args:
        vocabulary: The tokens, in the order of their ids; holds `[PAD]`, `[UNK]`,
            `[CLS]`, `[SEP]` and `[MASK]` at any place.
        lowercase: Whether to lower-case text.
        strip_accents: Whether to remove combining marks (é to e). Turn it off for
            scripts whose vowels are combining marks, such as Devanagari.
        language_neutral: Whether to treat every script alike: text is brought to the
            Unicode form NFKC and CJK ideographs are not split off as words of their
            own, which is BERT's rule otherwise.

    Raises:
        ValueError: If the vocabulary is empty, repeats a token or lacks a special
            token.

    Example:
    >>> tokenizer = WordPieceTokenizer(
    ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"])
    >>> tokenizer.encode("The cats!")
    [5, 6, 7, 1]
    >>> tokenizer.decode([5, 6, 7])
    'the cats'
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        lowercase: bool = True,
        strip_accents: bool = True,
        language_neutral: bool = False,
    ):
        import tokenizers

        self.vocabulary = list(vocabulary)
        _check_vocabulary(self.vocabulary)
        self.lowercase = bool(lowercase)
        self.strip_accents = bool(strip_accents)
        self.language_neutral = bool(language_neutral)
        ids = {token: index for index, token in enumerate(self.vocabulary)}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            ids[token] for token in SPECIAL_TOKENS
        )
        self._engine = tokenizers.Tokenizer(
            tokenizers.models.WordPiece(ids, unk_token=UNK)
        )
        self._engine.normalizer = _normalizer(**self.flags)
        self._engine.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int = 30522,
        lowercase: bool = True,
        strip_accents: bool = True,
        language_neutral: bool = False,
        max_train_bytes: int = 200_000_000,
    ) -> "WordPieceTokenizer":
        """Learns a vocabulary; the same lines always give the same one.

        Args:
            lines: Any text, in pieces of any length; read once.
            vocabulary_size: Tokens wanted. A small corpus gives fewer.
            lowercase: See the class.
            strip_accents: See the class.
            language_neutral: See the class.
            max_train_bytes: Text to train on, in UTF-8 bytes. Of more text an evenly
                spread sample of half to all of this size is used and held in memory.

        Returns:
            The tokenizer.

        Raises:
            ValueError: If there is no text, or the vocabulary has no room for the
                letters.
        """
        flags = dict(
            lowercase=lowercase,
            strip_accents=strip_accents,
            language_neutral=language_neutral,
        )
        vocabulary = train_vocabulary(
            lines,
            normalizer=_normalizer(**flags),
            vocabulary_size=vocabulary_size,
            special_tokens=SPECIAL_TOKENS,
            unknown_token=UNK,
            max_bytes=max_train_bytes,
        )
        return cls(vocabulary, **flags)

    @classmethod
    def from_vocabulary_file(
        cls,
        path: str | os.PathLike,
        lowercase: bool = True,
        strip_accents: bool = True,
        language_neutral: bool = False,
    ) -> "WordPieceTokenizer":
        """Reads a `vocab.txt`: one token a line, the line number being the id.

        Args:
            path: The file.
            lowercase: See the class.
            strip_accents: See the class.
            language_neutral: See the class.

        Returns:
            The tokenizer.

        Raises:
            ValueError: If the file is a directory, missing, not UTF-8, or no
                vocabulary.
        """
        path = os.fspath(path)
        if os.path.isdir(path):
            raise ValueError(
                f"{path} is a directory, not a vocabulary file. Pass the file, such "
                f"as {os.path.join(path, 'vocab.txt')}, or use load(directory)."
            )
        if not os.path.exists(path):
            raise ValueError(f"{path}: no such vocabulary file.")
        try:
            with open(path, encoding="utf-8-sig", newline="\n") as file:
                vocabulary = [line.rstrip("\r\n") for line in file]
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not a UTF-8 vocabulary ({error}).") from error
        while vocabulary and not vocabulary[-1]:
            vocabulary.pop()
        try:
            return cls(vocabulary, lowercase, strip_accents, language_neutral)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def load(cls, directory: str | os.PathLike) -> "WordPieceTokenizer":
        """Reads what `save` wrote.

        Args:
            directory: Holds `vocab.txt` and `tokenizer.json`.

        Returns:
            The tokenizer.

        Raises:
            ValueError: If a file is missing, malformed, or the vocabulary was changed.
        """
        path = os.path.join(directory, "tokenizer.json")
        config = _read_config(path)
        flags = {flag: config[flag] for flag in _FLAGS}
        vocabulary_path = os.path.join(directory, "vocab.txt")
        tokenizer = cls.from_vocabulary_file(vocabulary_path, **flags)
        if _sha256(tokenizer.vocabulary) != config["vocabulary_sha256"]:
            raise ValueError(
                f"{vocabulary_path} is not the vocabulary that {path} was written "
                "for. Restore the file that was saved with it."
            )
        return tokenizer

    def save(self, directory: str | os.PathLike) -> None:
        """Writes `vocab.txt` and `tokenizer.json`, each in one atomic step.

        Args:
            directory: Made if missing.
        """
        os.makedirs(directory, exist_ok=True)
        config = {
            "class": type(self).__name__,
            **self.flags,
            "vocabulary_sha256": _sha256(self.vocabulary),
        }
        texts = {
            "vocab.txt": "".join(f"{token}\n" for token in self.vocabulary),
            "tokenizer.json": json.dumps(config, indent=2) + "\n",
        }
        for name, text in texts.items():
            path = os.path.join(directory, name)
            with open(path + ".partial", "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.replace(path + ".partial", path)

    def encode(self, text: str) -> list[int]:
        """Encodes one text, without special tokens.

        Args:
            text: Any string.

        Returns:
            The token ids.
        """
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes texts, without special tokens.

        Args:
            texts: Any strings.

        Returns:
            The token ids of each.
        """
        encodings = self._engine.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def encode_with_offsets(
        self, texts: Sequence[str]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Encodes texts, without special tokens, and tells where each token stands.

        Args:
            texts: Any strings.

        Yields:
            For each text its token ids, int32 [tokens], and where each token starts
            and ends in the text, in characters, int32 [tokens, 2]. Combining marks
            go with the letter before them even where accents are stripped.
        """
        for text in texts:  # one by one: the engine's results are large
            encoding = self._engine.encode(text, add_special_tokens=False)
            offsets = np.array(encoding.offsets, "int32").reshape(-1, 2)
            if not text.isascii():
                marks = [unicodedata.category(character) == "Mn" for character in text]
                limits = [*offsets[1:, 0], len(text)]  # one too many without tokens
                for token, limit in zip(offsets, limits, strict=False):
                    while token[1] < limit and marks[token[1]]:
                        token[1] += 1
            yield np.array(encoding.ids, "int32"), offsets

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Looks ids up in the vocabulary.

        Args:
            ids: Token ids.

        Returns:
            The token of each.
        """
        return [self.vocabulary[index] for index in ids]

    def decode(self, ids: Iterable[int]) -> str:
        """Joins the tokens of ids into text, pieces to words.

        Args:
            ids: Token ids.

        Returns:
            The words separated by spaces; casing and spacing lost in encoding do not
            come back.
        """
        return " ".join(self.tokens(ids)).replace(" ##", "")

    def pack(
        self, texts: Sequence[str | tuple[str, str]], max_length: int
    ) -> dict[str, np.ndarray]:
        """Encodes texts or pairs of texts as model inputs.

        A text becomes `[CLS] text [SEP]`, a pair `[CLS] first [SEP] second [SEP]`.

        Args:
            texts: Strings or pairs of strings.
            max_length: Tokens allowed, special tokens included.

        Returns:
            A dict of int32 arrays [batch, length] `token_ids`, `segment_ids` (1 in
            the second text) and `padding_mask` (1 at tokens), `length` being that of
            the longest text.

        Raises:
            ValueError: If a text is too long; nothing is cut.

        Example:
        >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "b"])
        >>> tokenizer.pack([("a", "b b")], max_length=8)["segment_ids"].tolist()
        [[0, 0, 0, 1, 1, 1]]
        """
        pairs = [(text,) if isinstance(text, str) else tuple(text) for text in texts]
        if not pairs:
            raise ValueError("texts is empty: there is nothing to pack.")
        if any(len(pair) > 2 or not pair for pair in pairs):
            raise ValueError("texts: every item is a string or a pair of strings.")
        encoded = iter(self.encode_batch([text for pair in pairs for text in pair]))
        rows = []
        for index, pair in enumerate(pairs):
            token_ids, segment_ids = [self.cls_id], [0]
            for segment in range(len(pair)):
                ids = [*next(encoded), self.sep_id]
                token_ids += ids
                segment_ids += [segment] * len(ids)
            if len(token_ids) > max_length:
                raise ValueError(
                    f"texts[{index}] has {len(token_ids)} tokens with the special "
                    f"tokens, more than max_length={max_length}. Split or shorten "
                    "the text, or use a model of a larger max_length."
                )
            rows.append((token_ids, segment_ids))
        shape = len(rows), max(len(token_ids) for token_ids, _ in rows)
        packed = {
            "token_ids": np.full(shape, self.pad_id, "int32"),
            "segment_ids": np.zeros(shape, "int32"),
            "padding_mask": np.zeros(shape, "int32"),
        }
        for row, (token_ids, segment_ids) in enumerate(rows):
            packed["token_ids"][row, : len(token_ids)] = token_ids
            packed["segment_ids"][row, : len(token_ids)] = segment_ids
            packed["padding_mask"][row, : len(token_ids)] = 1
        return packed

    @property
    def engine(self):
        """The `tokenizers.Tokenizer` that does the work."""
        return self._engine

    @property
    def flags(self) -> dict[str, bool]:
        """The three normalisation flags by name."""
        return {flag: getattr(self, flag) for flag in _FLAGS}

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of the five special tokens, sorted."""
        ids = (self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id)
        return tuple(sorted(ids))

    @property
    def vocabulary_size(self) -> int:
        """Tokens in the vocabulary."""
        return len(self.vocabulary)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over vocabulary and flags: equal means equal encodings."""
        return _sha256([*self.vocabulary, json.dumps(self.flags, sort_keys=True)])


def _normalizer(lowercase: bool, strip_accents: bool, language_neutral: bool):
    from tokenizers import normalizers

    bert = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=not language_neutral,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    if not language_neutral:
        return bert
    # Stripping accents decomposes letters; the last step puts the others together.
    return normalizers.Sequence([normalizers.NFKC(), bert, normalizers.NFC()])


def _check_vocabulary(vocabulary: list[str]) -> None:
    if not vocabulary:
        raise ValueError("the vocabulary is empty.")
    repeated = [token for token, count in Counter(vocabulary).items() if count > 1]
    if repeated:
        raise ValueError(f"the vocabulary repeats tokens: {repeated[:10]}.")
    missing = [token for token in SPECIAL_TOKENS if token not in vocabulary]
    if missing:
        raise ValueError(
            f"the vocabulary lacks the special tokens {', '.join(missing)}: add a "
            "line for each."
        )


def _read_config(path: str) -> dict:
    if not os.path.isfile(path):
        raise ValueError(f"{path}: no such file; it is written by save(directory).")
    with open(path, "rb") as file:
        text = file.read(_MAX_TOKENIZER_JSON_BYTES + 1)
    try:
        if len(text) > _MAX_TOKENIZER_JSON_BYTES:
            raise ValueError("too large")
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path}: not a tokenizer.json of this project ({error})."
        ) from error
    expected = {"class": str, "vocabulary_sha256": str, **dict.fromkeys(_FLAGS, bool)}
    well_formed = isinstance(config, dict) and all(
        isinstance(config.get(key), kind) for key, kind in expected.items()
    )
    if not well_formed or config["class"] != WordPieceTokenizer.__name__:
        raise ValueError(
            f"{path}: not a tokenizer.json of this project, which holds "
            f"{', '.join(expected)}. For a vocabulary from elsewhere use "
            "from_vocabulary_file."
        )
    return config


def _sha256(strings: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(strings).encode("utf-8")).hexdigest()
