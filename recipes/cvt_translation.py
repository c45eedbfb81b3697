"""Cross-View Training of a translator.

    python recipes/cvt_translation.py --train train.en train.vi --dev tst2012.en \\
        tst2012.vi --test tst2013.en tst2013.vi --in_words \\
        --unlabelled 'news/*.txt' --word_vectors glove.6B.300d.txt

Files have a sentence in each line, and its translation in the other file's line; also
`.gz` and `.xz`. Without `--unlabelled` the same model learns from the translated
sentences alone, the baseline. Without files of its own the command learns to reverse
the sentences of the documentation that comes with Python. BLEU is sacrebleu's,
which needs `pip install -e '.[translation]'`.

Clark's thesis, 4.2.4: table 4.1 has the sizes and settings of `--preset base`, and
table 4.2 its scores; from English to Vietnamese (IWSLT 2015) BLEU is 28.9 supervised,
29.6 with CVT.
"""

import dataclasses
import tempfile
from itertools import islice
from typing import Literal

from keras_corrupt.cross_view import TranslationConfig, main
from keras_corrupt.cross_view.tasks.translation import TranslationTask


@dataclasses.dataclass(frozen=True)
class Config(TranslationConfig):
    train: tuple[str, str] | None = None
    """Files of the sentences and of their translations."""
    dev: tuple[str, str] | None = None
    """Those to evaluate on."""
    test: tuple[str, ...] = ()
    """File of sentences to translate, if any, and of their translations, if known."""
    max_train: int | None = None
    """Translated sentences to use, from the first on; all if not given."""
    max_length: int = 100
    """Words that a sentence to learn from and its translation have at most."""
    min_count: int = 6
    """How often a word must occur in the translations to be learned; others are UNK."""
    bleu_tokenizer: Literal["13a", "intl", "zh", "char", "none"] | None = None
    """How sacrebleu divides translations into words; 13a if not given, and with
    --in_words none."""


def task(config):
    names = "in_words", "min_count", "max_length", "max_train", "bleu_tokenizer"
    settings = {name: getattr(config, name) for name in names}
    if config.train is None:
        return made_task(settings)
    return TranslationTask("translation", config.files(), **settings)


def made_task(settings):
    """Makes a task of Python's documentation: sentences, their words reversed."""
    from keras_corrupt.cross_view.text.sentences import unlabelled_sentences
    from keras_corrupt.data import open_corpus

    corpus = open_corpus("python-docs")
    short = (words for words in unlabelled_sentences(corpus) if len(words) <= 20)
    sentences = list(islice(short, 1000))
    with tempfile.TemporaryDirectory() as directory:
        files = {}
        for split, part in [("train", sentences[:900]), ("dev", sentences[900:])]:
            files[split] = []
            for name, step in [("sentences", 1), ("reversed", -1)]:
                files[split].append(f"{directory}/{split}.{name}")
                with open(files[split][-1], "w", encoding="utf-8") as file:
                    file.writelines(" ".join(words[::step]) + "\n" for words in part)
        return TranslationTask("reversing", files, **settings)


def config():
    return Config(output="runs/cvt_translation")


if __name__ == "__main__":
    main(config(), task, __doc__)
