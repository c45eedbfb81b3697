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
import tempfile
from itertools import islice

from keras_corrupt.semi_supervised import ParsingConfig, main
from keras_corrupt.tasks.dependencies import DependencyTask


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
        return made_task()
    files = {"train": config.train, "dev": config.dev, "test": config.test}
    files = {split: path for split, path in files.items() if path}
    found = DependencyTask("parsing", files, config.punctuation, config.subtypes)
    if config.max_train:
        found.splits["train"] = found.splits["train"].take(config.max_train)
    return found


def made_task():
    """Makes a task of Python's documentation: each short word depends on a long one."""
    from keras_corrupt.semi_supervised.sentences import unlabelled_sentences

    sentences = list(islice(unlabelled_sentences("python-docs"), 600))
    with tempfile.TemporaryDirectory() as directory:
        files = {}
        for split, part in [("train", sentences[:400]), ("dev", sentences[400:])]:
            files[split] = f"{directory}/{split}.conllu"
            with open(files[split], "w", encoding="utf-8") as file:
                for words in part:
                    for i, (head, relation) in enumerate(tree(words)):
                        row = i + 1, words[i], *"____", head, relation, *"__"
                        file.write("\t".join(map(str, row)) + "\n")
                    file.write("\n")
        return DependencyTask("long_and_short", files)


def tree(words):
    """Returns each word's (head, relation).

    The first word of the most letters is the root. Other words of four letters or more
    depend on it; a shorter one, and what has no letters, on the next of these, if any.

    >>> tree(["the", "long", "sentence", "."])
    [(2, 'short'), (3, 'long'), (0, 'root'), (3, 'short')]
    """
    root = max(range(len(words)), key=lambda i: len(words[i])) + 1
    found, following = [], root
    for i in range(len(words), 0, -1):
        long = len(words[i - 1]) > 3
        found.append((root, "long") if long else (following, "short"))
        following = i if long else following
    found.reverse()
    found[root - 1] = 0, "root"
    return found


def config():
    return Config(output="runs/cvt_parsing")


if __name__ == "__main__":
    main(config(), task, __doc__)
