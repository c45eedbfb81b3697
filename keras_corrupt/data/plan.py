"""The corpus and the settings from which a data set is prepared.

`prepare_dataset` (one machine) and the Beam pipeline (many) share them.
"""

import dataclasses
from collections.abc import Sequence

from keras_corrupt.commands.bounds import check_bounds, check_whole_numbers
from keras_corrupt.data.corpus import Corpus, open_corpus
from keras_corrupt.data.settings import BOUNDS, ExampleSettings, settings_in
from keras_corrupt.data.sources import Source
from keras_corrupt.data.splits import held_out_lines
from keras_corrupt.tokenizers import KINDS, Tokenizer, from_file
from keras_corrupt.tokenizers.growth import check_growth, grown

_FLAGS = ("lowercase", "strip_accents", "language_neutral")


@dataclasses.dataclass(frozen=True)
class Plan(ExampleSettings):
    """A corpus, and how its text becomes examples."""

    corpus: tuple[str, ...]
    """Files (.txt, .train, .dev, .jsonl, .csv, .tsv, each also .gz, .xz, .zst;
    .parquet, .arrow), globs, directories, URLs of these (gs://, s3://),
    tfds:NAME[:SPLIT], hf-datasets:NAME[@REVISION][:CONFIG][:SPLIT], or python-docs."""
    sequence_length: int = 128
    """Tokens of the longest example, special tokens included."""
    seed: int = 0
    """Seed of the held-out choice and of the example builder."""

    def __post_init__(self):
        check_whole_numbers(self)
        check_bounds(vars(self), BOUNDS)
        if self.tokenizer not in KINDS:
            raise ValueError(
                f"tokenizer={self.tokenizer!r}: pass one of {', '.join(KINDS)}."
            )
        if self.grow_vocabulary and self.vocabulary is None:
            raise ValueError(
                f"grow_vocabulary={self.grow_vocabulary}: there is none to grow. Pass "
                "its file as --vocabulary, or a larger --vocabulary_size to train one."
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
        tokenizer = from_file(self.vocabulary, **self._flags)
        if tokenizer.kind != self.tokenizer:
            raise ValueError(
                f"vocabulary={str(self.vocabulary)!r} is one of tokenizer="
                f"{tokenizer.kind!r}, not {self.tokenizer!r}. Pass that."
            )
        if self.grow_vocabulary:
            check_growth(tokenizer)
        return tokenizer

    def held_out_lines(self, sources: Sequence[Source]) -> list[str]:
        """Checks the splits; returns some held-out lines. See `splits`."""
        return held_out_lines(
            sources, fraction=self.validation_fraction, seed=self.seed
        )

    def make_tokenizer(
        self,
        tokenizer: Tokenizer | None,
        sources: Sequence[Source],
        progress: bool = False,
    ) -> Tokenizer:
        """Trains a vocabulary on the corpus, or grows the one that was given.

        Args:
            tokenizer: By `given_tokenizer`.
            sources: The corpus; read once, or not at all.
            progress: Whether a terminal shows bars of progress.

        Returns:
            The tokenizer.
        """
        lines = (line for source in sources for _, line in source.lines())
        if tokenizer is None:
            kind = KINDS[self.tokenizer]
            return kind.train(
                lines, self.vocabulary_size, **self._flags, progress=progress
            )
        if self.grow_vocabulary:
            return grown(tokenizer, lines, self.grow_vocabulary)
        return tokenizer

    def settings(self, tokenizer: Tokenizer | None) -> dict:
        """Lists the settings that the result depends on, besides the corpus.

        Args:
            tokenizer: By `given_tokenizer`.

        Returns:
            Setting names and values, as JSON holds them.
        """
        return settings_in(self) | {
            "vocabulary": tokenizer and tokenizer.fingerprint,
            "vocabulary_size": None if tokenizer else self.vocabulary_size,
            "sequence_length": self.sequence_length,
            "seed": self.seed,
        }

    @property
    def _flags(self) -> dict[str, bool]:
        names = KINDS[self.tokenizer].flag_names
        return {name: getattr(self, name) for name in names}
