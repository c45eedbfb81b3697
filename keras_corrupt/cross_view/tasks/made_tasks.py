"""Tasks of the documentation that comes with Python, for trying without files."""

import contextlib
import tempfile
from itertools import islice

from keras_corrupt.cross_view.tasks.dependencies import DependencyTask
from keras_corrupt.cross_view.text.sentences import unlabelled_sentences
from keras_corrupt.data import open_corpus
from keras_corrupt.tasks.conll import TaggingTask

#: Sentences to learn from, and to evaluate on.
TRAIN, DEV = 400, 200


def names_and_numbers():
    """Returns a `TaggingTask` of names and numbers, found by rules."""

    def rows(words):
        for i, word in enumerate(words):
            tag = "B-NAME" if i and word[0].isupper() else "O"
            yield word, "B-NUMBER" if word[0].isdigit() else tag

    with written(rows, "txt") as files:
        return TaggingTask("names_and_numbers", files, scheme="bioes")


def long_and_short():
    """Returns a `DependencyTask` in which each short word depends on a long one."""

    def rows(words):
        for i, (head, relation) in enumerate(tree(words)):
            yield i + 1, words[i], *"____", head, relation, *"__"

    with written(rows, "conllu") as files:
        return DependencyTask("long_and_short", files)


@contextlib.contextmanager
def written(rows, suffix):
    """Writes files of sentences for a while: split -> path.

    Args:
        rows: Function of a sentence's words that returns the columns of each.
        suffix: Suffix of the files.
    """
    sentences = unlabelled_sentences(open_corpus("python-docs"))
    sentences = list(islice(sentences, TRAIN + DEV))
    with tempfile.TemporaryDirectory() as directory:
        files = {}
        for split, part in [("train", sentences[:TRAIN]), ("dev", sentences[TRAIN:])]:
            files[split] = f"{directory}/{split}.{suffix}"
            with open(files[split], "w", encoding="utf-8") as file:
                for words in part:
                    lines = ("\t".join(map(str, row)) + "\n" for row in rows(words))
                    file.write("".join(lines) + "\n")
        yield files


def tree(words):
    """Returns each word's (head, relation).

    The first word of the most letters is the root. Other words of four letters or more
    depend on it; a shorter one, and what has no letters, on the next of these, if any.

    >>> tree(["the", "long", "sentence", "."])
    [(2, 'short'), (3, 'long'), (0, 'root'), (3, 'short')]
    """
    root = max(range(len(words)), key=lambda i: len(words[i])) + 1
    edges, following = [], root
    for i in range(len(words), 0, -1):
        long = len(words[i - 1]) > 3
        edges.append((root, "long") if long else (following, "short"))
        following = i if long else following
    edges.reverse()
    edges[root - 1] = 0, "root"
    return edges
