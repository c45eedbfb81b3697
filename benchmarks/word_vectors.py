"""Trains vectors of words on plain text, which Cross-View Training can start from.

    python -m benchmarks.word_vectors wiki.txt --size 96 --output vectors.txt

Skip-gram with negative sampling (Mikolov et al., 2013), by gensim. The
thesis starts from GloVe's vectors, of 6 billion words of text. The file has words in
lower case, the most frequent ones first, as GloVe's.
"""

import dataclasses
import time
from pathlib import Path

import tyro

from keras_corrupt.cross_view.text.sentences import unlabelled_sentences
from keras_corrupt.data import open_corpus


@dataclasses.dataclass(kw_only=True)
class Settings:
    """What to train on."""

    text: tyro.conf.Positional[tuple[str, ...]]
    """Plain text: files, globs or directories."""
    output: str
    """The file to write."""
    size: int = 300
    """Numbers of a vector: 300 for the thesis's networks, 96 for `tiny`."""
    epochs: int = 5
    """Passes over the text."""
    min_count: int = 5
    """How often a word must occur to have a vector."""
    workers: int = 2
    """Threads."""


class LowerCased:
    """The sentences of some text, as often as they are wanted."""

    def __init__(self, text):
        self.text = text

    def __iter__(self):
        for words in unlabelled_sentences(open_corpus(self.text)):
            yield [word.lower() for word in words]


def main(settings):
    from gensim.models import Word2Vec

    Path(settings.output).parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    model = Word2Vec(
        LowerCased(settings.text),
        vector_size=settings.size,
        epochs=settings.epochs,
        min_count=settings.min_count,
        workers=settings.workers,
        sg=1,
        window=5,
        negative=5,
    )
    model.wv.save_word2vec_format(settings.output, write_header=False)
    seconds = time.perf_counter() - start
    words, read = len(model.wv), model.corpus_total_words
    print(f"{words:,} words' vectors of {read:,} words of text, in {seconds:.0f} s.")
    for word in [word for word in ("good", "three", "paris") if word in model.wv]:
        near = ", ".join(
            neighbour for neighbour, _ in model.wv.most_similar(word, topn=5)
        )
        print(f"{word}: {near}")


if __name__ == "__main__":
    try:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
    except (ValueError, OSError, ImportError) as error:
        raise SystemExit(f"Error: {error}") from error
