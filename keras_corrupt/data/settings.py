"""How examples are made of a corpus: each setting stands here, for all commands."""

import dataclasses
from typing import Literal

from keras_corrupt.commands.bounds import Bounds
from keras_corrupt.data.examples import MIN_LENGTH
from keras_corrupt.tokenizers.vocabulary import MAX_TOKENS

#: Field of a command that makes examples -> its bounds.
BOUNDS = {
    "vocabulary_size": Bounds(1, MAX_TOKENS, closed=True),
    "grow_vocabulary": Bounds(0, MAX_TOKENS, closed=True),
    "validation_fraction": Bounds(0, 1, above=True),
    "sequence_length": Bounds(MIN_LENGTH),
    "seed": Bounds(0, 2**32),
    "workers": Bounds(1),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleSettings:
    """How the text of a corpus becomes examples.

    Each field is a flag of all commands that make examples.
    """

    vocabulary: str | None = None
    """A `vocab.txt`, `tokenizer.json` or SentencePiece `.model` to use; trained on the
    corpus if not given."""
    tokenizer: Literal["wordpiece", "byte_bpe", "unigram"] = "wordpiece"
    """Kind of the vocabulary."""
    vocabulary_size: int = 30522
    """Number of tokens of a vocabulary that is trained."""
    grow_vocabulary: int = 0
    """Word pieces to add to a vocabulary that is given: pieces of the corpus that it
    cuts. The ids that it has keep their meaning."""
    lowercase: bool = True
    """Whether to lower-case the text; `--no_lowercase` keeps capitals."""
    strip_accents: bool = True
    """Whether to remove accents, by default also German umlauts';
    `--no_strip_accents` keeps them."""
    language_neutral: bool = False
    """Whether word pieces are to treat every script alike, by Unicode's NFKC. A model
    on such examples cannot be exported together with its tokenizer."""
    documents: Literal["blank_lines", "lines"] = "blank_lines"
    """What separates documents in text files: blank lines, or one line is one."""
    text_column: str = "text"
    """The column, field or feature that holds the documents, wherever they are rows."""
    validation_fraction: float = 0.005
    """Fraction of the documents held out."""
    on_bad_bytes: Literal["error", "skip"] = "error"
    """What to do with lines that are not UTF-8."""
    on_bad_rows: Literal["error", "skip"] = "error"
    """What to do with rows without a text."""


#: The names of these settings.
NAMES = tuple(field.name for field in dataclasses.fields(ExampleSettings))


def settings_in(config):
    """Returns the `ExampleSettings` that another object has: name -> value.

    Args:
        config: An object with all of their fields.
    """
    return {name: getattr(config, name) for name in NAMES}
