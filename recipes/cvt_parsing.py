"""Cross-View Training of a dependency parser.

    python recipes/cvt_parsing.py --train en_ewt-ud-train.conllu \\
        --dev en_ewt-ud-dev.conllu --unlabelled 'wiki/*.txt' \\
        --word_vectors glove.6B.300d.txt

Files are CoNLL-U: forms, heads and relations are read, and no parts of speech, but to
tell punctuation where it is not to count. Without `--unlabelled` the same model learns
from the labelled sentences alone, the baseline. Without files of its own the command
parses the documentation that comes with Python, by rules of the words' lengths. Trees
need `pip install -e '.[parsing]'`.

Clark's thesis, 4.2.3: table 4.1 has the sizes and settings of `--preset base`, and
table 4.2 its scores; on the Penn Treebank, whose punctuation does not count, LAS is
93.3 supervised, 94.1 with CVT.
"""

import dataclasses

from keras_corrupt.cross_view import ParsingConfig, main
from keras_corrupt.cross_view.tasks.dependencies import DependencyTask


@dataclasses.dataclass(frozen=True)
class Config(ParsingConfig):
    train: str | None = None
    """CoNLL-U file of the labelled sentences."""
    dev: str | None = None
    """File of the sentences to evaluate on."""
    test: str | None = None
    """File of sentences to parse, if any."""
    max_train: int | None = None
    """Labelled sentences to use, from the first on; all if not given."""
    punctuation: bool = True
    """Whether UAS and LAS count punctuation; for the Penn Treebank they do not."""
    subtypes: bool = False
    """Whether relations have their subtypes (nsubj:pass), which CoNLL's evaluation
    leaves out."""


def task(config):
    if config.train is None:
        from keras_corrupt.cross_view.tasks.made_tasks import long_and_short

        return long_and_short()
    read = config.files(), config.punctuation, config.subtypes
    return DependencyTask("parsing", *read).first(config.max_train)


def config():
    return Config(output="runs/cvt_parsing")


if __name__ == "__main__":
    main(config(), task, __doc__)
