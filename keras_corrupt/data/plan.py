"""What a data set is to be made of.

Shared by `prepare_dataset` (one machine) and the Beam pipeline (many).
"""

import dataclasses
import os
from collections.abc import Sequence

from keras_corrupt.data.corpus import Corpus, open_corpus
from keras_corrupt.data.examples import MIN_LENGTH
from keras_corrupt.data.sources import Source
from keras_corrupt.data.splits import held_out_lines
from keras_corrupt.tokenizers import KINDS, Tokenizer, from_file
from keras_corrupt.tokenizers.growth import check_growth, grown
from keras_corrupt.tokenizers.vocabulary import MAX_TOKENS, check_size

_FLAGS = ("lowercase", "strip_accents", "language_neutral")


@dataclasses.dataclass(frozen=True)
class Plan:
    """The settings of a data set; `prepare_dataset` describes each.

    Attributes:
        corpus: See `prepare_dataset`, as all others.
        vocabulary: Path of a vocabulary, or None to train one.
        tokenizer: Kind of the vocabulary, a key of `KINDS`.
        vocabulary_size: Tokens of a trained vocabulary.
        lowercase: Normalisation flag.
        strip_accents: Normalisation flag.
        language_neutral: Normalisation flag.
        sequence_length: Tokens of the longest example.
        validation_fraction: Share of documents held out.
        seed: Seed of all random choices.
        on_bad_bytes: `"error"` or `"skip"`.
        on_bad_rows: `"error"` or `"skip"`.
        documents: `"blank_lines"` or `"lines"`.
        text_column: Column of the documents in tables.
        grow_vocabulary: Pieces to add to a given vocabulary.
    """

    corpus: str | Sequence[str]
    vocabulary: str | os.PathLike | None = None
    tokenizer: str = "wordpiece"
    vocabulary_size: int = 30522
    lowercase: bool = True
    strip_accents: bool = True
    language_neutral: bool = False
    sequence_length: int = 128
    validation_fraction: float = 0.005
    seed: int = 0
    on_bad_bytes: str = "error"
    on_bad_rows: str = "error"
    documents: str = "blank_lines"
    text_column: str = "text"
    grow_vocabulary: int = 0

    def __post_init__(self):
        if self.sequence_length < MIN_LENGTH:
            raise ValueError(
                f"sequence_length={self.sequence_length}: the least is {MIN_LENGTH}."
            )
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction={self.validation_fraction}: pass a share "
                "between 0 and 1, such as 0.005."
            )
        if self.tokenizer not in KINDS:
            raise ValueError(
                f"tokenizer={self.tokenizer!r}: pass one of {', '.join(KINDS)}."
            )
        check_size(self.vocabulary_size)
        if self.grow_vocabulary and self.vocabulary is None:
            raise ValueError(
                f"grow_vocabulary={self.grow_vocabulary}: there is none to grow. Pass "
                "its file as --vocabulary, or a larger --vocabulary_size to train one."
            )
        if not 0 <= self.grow_vocabulary <= MAX_TOKENS:
            raise ValueError(
                f"grow_vocabulary={self.grow_vocabulary}: pass the number of pieces to "
                f"add, from 0 to {MAX_TOKENS:,}."
            )
        for name in _FLAGS:
            if name not in self._flags and getattr(self, name):
                raise ValueError(
                    f"{name}=True is no flag of tokenizer={self.tokenizer!r}, which "
                    f"has {', '.join(self._flags)}. Leave it out."
                )

    def sources(self) -> Corpus:
        """Opens the corpus."""
        return open_corpus(
            self.corpus,
            self.on_bad_bytes,
            self.documents,
            self.on_bad_rows,
            self.text_column,
        )

    def given_tokenizer(self) -> Tokenizer | None:
        """Loads the vocabulary that the user gave, if one was given."""
        if self.vocabulary is None:
            return None
        given = from_file(self.vocabulary, **self._flags)
        if given.kind != self.tokenizer:
            raise ValueError(
                f"vocabulary={str(self.vocabulary)!r} is one of tokenizer="
                f"{given.kind!r}, not {self.tokenizer!r}. Pass that."
            )
        if self.grow_vocabulary:
            check_growth(given)
        return given

    def held_out_lines(self, sources: Sequence[Source]) -> list[str]:
        """Checks the splits; returns some held-out lines. See `splits`."""
        return held_out_lines(
            sources, fraction=self.validation_fraction, seed=self.seed
        )

    def make_tokenizer(
        self,
        given: Tokenizer | None,
        sources: Sequence[Source],
        progress: bool = False,
    ) -> Tokenizer:
        """Trains a vocabulary on the corpus, or grows the one that was given.

        Args:
            given: That of `given_tokenizer`.
            sources: The corpus; read once, or not at all.
            progress: Whether a terminal shows bars of progress.

        Returns:
            The tokenizer.
        """
        lines = (line for source in sources for _, line in source.lines())
        if given is None:
            kind = KINDS[self.tokenizer]
            return kind.train(
                lines, self.vocabulary_size, **self._flags, progress=progress
            )
        if self.grow_vocabulary:
            return grown(given, lines, self.grow_vocabulary)
        return given

    def settings(self, tokenizer: Tokenizer | None) -> dict:
        """Lists what the result depends on, besides the corpus.

        Args:
            tokenizer: That of `given_tokenizer`.

        Returns:
            Setting names and values, as JSON holds them.
        """
        return {
            "vocabulary": tokenizer and tokenizer.fingerprint,
            "tokenizer": self.tokenizer,
            "vocabulary_size": None if tokenizer else self.vocabulary_size,
            **{name: getattr(self, name) for name in _FLAGS},
            "sequence_length": self.sequence_length,
            "validation_fraction": self.validation_fraction,
            "seed": self.seed,
            "on_bad_bytes": self.on_bad_bytes,
            "on_bad_rows": self.on_bad_rows,
            "documents": self.documents,
            "text_column": self.text_column,
            "grow_vocabulary": self.grow_vocabulary,
        }

    @property
    def _flags(self) -> dict[str, bool]:
        names = KINDS[self.tokenizer].flag_names
        return {name: getattr(self, name) for name in names}
