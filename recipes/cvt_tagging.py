"""Cross-View Training of a tagger: chunks, entities, parts of speech.

    python recipes/cvt_tagging.py --train conll2000/train.txt --dev conll2000/dev.txt \\
        --unlabelled 'wiki/*.txt' --word_vectors glove.6B.300d.txt

Without `--unlabelled` the same model learns from the labelled sentences alone, the
baseline. `--preset tiny_en`, or the directory of a model that was pretrained here,
takes that encoder in the LSTMs' place. Without files of its own the command tags names
and numbers in the documentation that comes with Python, by rules that need no reading.

Clark's thesis, chapter 4: table 4.1 has the sizes and settings of `--preset base`, and
table 4.2 its scores; on chunking (CoNLL-2000) F1 is 95.1 supervised, 96.6 with CVT.
"""

import dataclasses
from typing import Literal

from keras_corrupt.cross_view import CrossViewConfig, main
from keras_corrupt.tasks.conll import TaggingTask


@dataclasses.dataclass(frozen=True)
class Config(CrossViewConfig):
    train: str | None = None
    """File of the labelled sentences."""
    dev: str | None = None
    """File of the sentences to evaluate on."""
    test: str | None = None
    """File of sentences to tag, if any."""
    max_train: int | None = None
    """Labelled sentences to use, from the first on; all if not given."""
    word_column: int | None = None
    """Column of the words, from 0; the first, or CoNLL-U's second, if not given."""
    tag_column: int | None = None
    """Column of the tags, from 0; the last if not given."""
    scheme: Literal["bio", "bioes", "plain"] = "bioes"
    """How the model tags spans, whatever the files do; `plain` for other tags."""


def task(config):
    if config.train is None:
        from keras_corrupt.cross_view.tasks.made_tasks import names_and_numbers

        return names_and_numbers()
    columns = config.word_column, config.tag_column
    whole = TaggingTask("tagging", config.files(), *columns, config.scheme)
    return whole.first(config.max_train)


def config():
    return Config(output="runs/cvt_tagging")


if __name__ == "__main__":
    main(config(), task, __doc__)
