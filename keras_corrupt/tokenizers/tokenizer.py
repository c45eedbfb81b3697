"""What all tokenizers have in common: the protocol that the package works with."""

import functools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import tokenizers

from keras_corrupt.files.whole import write_whole
from keras_corrupt.tokenizers.fingerprints import sha256
from keras_corrupt.tokenizers.flat_ids import flattened
from keras_corrupt.tokenizers.normalization import normalization_flags
from keras_corrupt.tokenizers.offsets import add_marks, leave_out_space
from keras_corrupt.tokenizers.packing import joined, padded
from keras_corrupt.tokenizers.reading import parse_engine, read_text
from keras_corrupt.tokenizers.roles import (
    find_roles,
    hugging_face_config,
    special_tokens,
    template,
)
from keras_corrupt.tokenizers.texts import check_text, text_list, text_tuples

#: The files of a saved tokenizer: two for other libraries, one for this.
DOCUMENT_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
SETTINGS_FILE = "tokenizer_settings.json"


class Tokenizer:
    """Text to token ids and back, by an engine of the `tokenizers` library.

    A subclass is a kind of vocabulary. It trains one, tells which of its tokens begin
    a word, and joins them to text. Special tokens that are written in a text, such as
    `"[MASK]"`, are ordinary text.

    Args:
        engine: A `tokenizers.Tokenizer`. Its post-processing, padding and truncation
            give way to `[CLS] A [SEP] B [SEP]`.
        roles: Role -> special token; found by the usual names if not given. Roles are
            `padding`, `unknown`, `classify` (the token whose vector stands for the
            sequence), `separate` (the one behind each segment) and `mask`. The id of
            each is an attribute, such as `mask_id`.

    Raises:
        ValueError: If the vocabulary is empty, has gaps between its ids, or a role
            has no token.
    """

    #: Name of the kind, as flags and files write it.
    kind = ""
    #: Flags of `train`: how text is normalised before it is cut.
    flag_names = ("lowercase", "strip_accents")

    def __init__(
        self, engine: tokenizers.Tokenizer, roles: Mapping[str, str] | None = None
    ):
        ids = engine.get_vocab(with_added_tokens=True)
        self.vocabulary = sorted(ids, key=ids.get)
        if not ids:
            raise ValueError("the vocabulary is empty.")
        if ids[self.vocabulary[-1]] != len(ids) - 1:
            raise ValueError("the ids of the vocabulary are not 0, 1, 2 and so on.")
        self.roles = find_roles(self.vocabulary, roles)
        self.role_ids = {role: ids[token] for role, token in self.roles.items()}
        self.padding_id = self.role_ids["padding"]
        self.unknown_id = self.role_ids["unknown"]
        self.classify_id = self.role_ids["classify"]
        self.separate_id = self.role_ids["separate"]
        self.mask_id = self.role_ids["mask"]
        engine.no_padding()
        engine.no_truncation()
        engine.add_special_tokens(special_tokens(self.roles.values(), engine))
        engine.post_processor = template(self.roles, self.role_ids)
        self._document = engine.to_str(pretty=True)
        self._engine = self._encoding_engine(engine)
        self._engine.encode_special_tokens = True  # as the ordinary text they are

    @classmethod
    def from_engine(
        cls, engine: tokenizers.Tokenizer, roles: Mapping[str, str] | None = None
    ) -> "Tokenizer":
        """Makes a tokenizer of another library's, if it does just what that does.

        Args:
            engine: A `tokenizers.Tokenizer`.
            roles: See the class.

        Returns:
            The tokenizer.

        Raises:
            ValueError: If it is not of this kind.
        """
        return cls(engine, roles)

    @classmethod
    def from_saved(cls, directory: str | os.PathLike, settings: dict) -> "Tokenizer":
        """Reads the vocabulary that `save` wrote.

        Args:
            directory: Where it is.
            settings: What `tokenizer_settings.json` holds.

        Returns:
            The tokenizer.

        Raises:
            ValueError: If a file is missing or malformed.
        """
        path = os.path.join(directory, DOCUMENT_FILE)
        document = read_text(path)
        tokenizer = cls(parse_engine(document, path), settings["roles"])
        # As it was: another version of the library may write it in another way.
        tokenizer._document = document
        return tokenizer

    # === What a subclass defines ===

    def _begins_word(self, token: str) -> bool:
        """Whether a token that is not special begins a word."""
        raise NotImplementedError

    def _spaced(self, tokens: Sequence[str]) -> str:
        """Joins tokens that are not special to text, with a space before each word."""
        raise NotImplementedError

    def _encoding_engine(self, engine: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
        """The engine that encodes, if it is not the one that is saved."""
        return engine

    def readable(self, token_id: int) -> str:
        """Returns a token as a person reads it, by itself.

        Args:
            token_id: Its id.

        Returns:
            The token, with the mark that tells whether it begins a word.
        """
        return self._token(token_id)

    def _token(self, token_id: int) -> str:
        """The token of an id, of which a model may have more than there are tokens."""
        if token_id < len(self.vocabulary):
            return self.vocabulary[token_id]
        return f"[id {token_id}]"

    # === Text to ids ===

    def encode(self, text: str) -> list[int]:
        """Encodes one text, without special tokens.

        Args:
            text: Any string.

        Returns:
            The token ids.

        Raises:
            ValueError: If it is no text.
        """
        check_text(text)
        return self._encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes texts, without special tokens.

        Args:
            texts: Any strings.

        Returns:
            The token ids of each.

        Raises:
            ValueError: If something is no text.
        """
        return self._encode_batch(text_list(texts))

    def _encode_batch(self, texts: list[str]) -> list[list[int]]:
        encodings = self._engine.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def encode_flat(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Encodes much text, without special tokens.

        Args:
            texts: Any strings.

        Returns:
            The token ids of all texts, int32 [tokens], and how many are each text's,
            int64 [texts].

        Raises:
            ValueError: If something is no text.
        """
        return self._encode_flat(text_list(texts))

    def _encode_flat(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        return flattened(self._encode_batch(texts))

    def expect(self, characters: int) -> None:
        """Tells how much text is to come: a fast tokenizer can be slow to start."""

    def encode_with_offsets(
        self, texts: Sequence[str]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Encodes texts, without special tokens, and tells where each token stands.

        Args:
            texts: Any strings.

        Yields:
            For each text its token ids, int32 [tokens], and where each token starts
            and ends in the text, in characters, int32 [tokens, 2]. White space at
            either end of a token is left out; a token of white space alone has no
            characters. Combining marks go with the letter before them even where
            accents are stripped. Tokens that share a character all have it.

        Raises:
            ValueError: If something is no text.
        """
        for text in text_list(texts):  # one by one: the engine's results are large
            encoding = self._engine.encode(text, add_special_tokens=False)
            offsets = np.array(encoding.offsets, "int32").reshape(-1, 2)
            leave_out_space(offsets, text)
            if not text.isascii():
                add_marks(offsets, text)
            yield np.array(encoding.ids, "int32"), offsets

    def pack(
        self, texts: Sequence[str | tuple[str, str]], max_length: int, first: int = 0
    ) -> dict[str, np.ndarray]:
        """Encodes texts or pairs of texts as model inputs.

        A text becomes `[CLS] text [SEP]`, a pair `[CLS] first [SEP] second [SEP]`.

        Args:
            texts: Strings or pairs of strings.
            max_length: Tokens allowed, special tokens included.
            first: The number of the first text, for messages.

        Returns:
            A dict of int32 arrays [batch, length] `token_ids`, `segment_ids` (1 in
            the second text) and `padding_mask` (1 at tokens), as long as the longest
            text.

        Raises:
            ValueError: If something is no text, or too long; nothing is cut.

        Example:
        >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
        >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "b"])
        >>> tokenizer.pack([("a", "b b")], max_length=8)["segment_ids"].tolist()
        [[0, 0, 0, 1, 1, 1]]
        """
        pairs = text_tuples(texts)
        if not pairs:
            raise ValueError("texts is empty: there is nothing to pack.")
        encoded = iter(self.encode_batch([text for pair in pairs for text in pair]))
        rows = []
        for index, pair in enumerate(pairs, first):
            segments = [next(encoded) for _ in pair]
            row = joined(segments, self.classify_id, self.separate_id)
            if len(row[0]) > max_length:
                raise ValueError(
                    f"texts[{index}] has {len(row[0])} tokens with the special "
                    f"tokens, more than max_length={max_length}. Split or shorten "
                    "the text, or use a model of a larger max_length."
                )
            rows.append(row)
        return padded(rows, self.padding_id)

    # === Ids to text ===

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Looks ids up in the vocabulary.

        Args:
            ids: Token ids.

        Returns:
            The token of each. An id beyond the vocabulary is written as `[id 123]`.
        """
        return [self._token(index) for index in ids]

    def decode(
        self, ids: Iterable[int], descriptions: Mapping[int, str] | None = None
    ) -> str:
        """Joins the tokens of ids to text, pieces to words.

        Args:
            ids: Token ids.
            descriptions: Place of a token -> what to write instead of it.

        Returns:
            The text. Special tokens and descriptions have a space before them. Casing
            and spacing lost in encoding do not come back.

        Example:
        >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
        >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "cat", "##s", "sleep"])
        >>> tokenizer.decode([2, 5, 6, 7, 3], descriptions={3: "<sleep 0.9>"})
        '[CLS] cats <sleep 0.9> [SEP]'
        """
        descriptions = descriptions or {}
        text, plain = "", []
        for place, token_id in enumerate(ids):
            token, is_token = self._token(token_id), token_id < len(self.vocabulary)
            is_text = is_token and token_id not in self.special_ids
            if is_text and place not in descriptions:
                plain.append(token)
                continue
            text += self._spaced(plain)
            text += "" if text.endswith(" ") else " "
            text += descriptions.get(place, token)
            plain = []
        return (text + self._spaced(plain)).removeprefix(" ")

    # === What it is ===

    @property
    def engine(self) -> tokenizers.Tokenizer:
        """The `tokenizers.Tokenizer` that does the work."""
        return self._engine

    @property
    def why_slow(self) -> str | None:
        """What keeps much text from being encoded faster, if anything does."""
        return None

    @property
    def flags(self) -> dict[str, bool]:
        """How text is normalised before it is cut, by the names of `flag_names`."""
        return normalization_flags(self._engine.normalizer)

    @functools.cached_property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of the five special tokens, sorted."""
        return tuple(sorted(self.role_ids.values()))

    @functools.cached_property
    def word_starts(self) -> np.ndarray:
        """Whether each token begins a word, bool [vocabulary].

        A word is such a token with those that follow up to the next such token.
        Special tokens begin a word, so that no word reaches beyond a segment. A mark
        of punctuation begins one too, even where nothing separates it from a letter;
        letters that follow it at once belong to it, unless the vocabulary marks what
        continues a word, as WordPiece does.
        """
        starts = [self._begins_word(token) for token in self.vocabulary]
        starts = np.array(starts, bool)
        starts[list(self.special_ids)] = True
        return starts

    @property
    def vocabulary_size(self) -> int:
        """Tokens in the vocabulary."""
        return len(self.vocabulary)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides encodings: equal means equal encodings."""
        return sha256([self._document])

    def files(self) -> dict[str, str]:
        """Returns the files of a saved tokenizer, name -> text.

        `tokenizer.json` is for other libraries to read, such as Hugging Face's, and
        so is `tokenizer_config.json`, which names the special tokens to them, and says
        that in a text these are ordinary text (a bare `tokenizers.Tokenizer` does not
        read it). What this package needs besides is in `tokenizer_settings.json`.
        """
        settings = {
            "kind": self.kind,
            "flags": self.flags,
            "roles": self.roles,
            "vocabulary_sha256": sha256(self.vocabulary),
            "fingerprint": self.fingerprint,
        }
        return {
            DOCUMENT_FILE: self._document,
            CONFIG_FILE: json.dumps(hugging_face_config(self.roles), indent=2) + "\n",
            SETTINGS_FILE: json.dumps(settings, indent=2) + "\n",
        }

    def save(self, directory: str | os.PathLike) -> None:
        """Writes the tokenizer's files, each in one atomic step.

        Args:
            directory: Made if missing.
        """
        os.makedirs(directory, exist_ok=True)
        for name, text in self.files().items():
            write_whole(os.path.join(directory, name), text)
