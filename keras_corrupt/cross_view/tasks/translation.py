"""Files of sentences and their translations, and the task of translating like them."""

import os
import re
import statistics
from collections import Counter

from keras_corrupt.cross_view.tasks.words import split_joined, split_words
from keras_corrupt.files.text import text_lines
from keras_corrupt.files.whole import whole_file
from keras_corrupt.tasks.task import Split, Task, check_splits

#: How sacrebleu can divide text into words; those that need no other library.
BLEU_TOKENIZERS = ("13a", "intl", "zh", "char", "none")


class TranslationTask(Task):
    """Translating the lines of a file as the lines of another one.

    Measured by BLEU, as the command `sacrebleu` computes it by default.

    Args:
        name: The task's name in results.
        files: Split name -> paths of the sentences and of their translations; see
            `Task.splits` and `read_parallel`. For a split whose name begins with
            `"test"`, the sentences alone will do.
        in_words: Whether spaces alone separate words, in all files. Otherwise
            plain text is divided: sentences by rules for English, translations at
            everything that is no letter.
        min_count: How often a word must occur in the translations of `"train"` to be
            learned; others are unknown words there (Clark's thesis, 4.3.1).
        max_length: Words that a sentence of `"train"` and its translation have at
            most; longer ones are left out (`Split.skipped`).
        max_train: Sentences of `"train"` to use, from the first on; all if not given.
        bleu_tokenizer: One of `BLEU_TOKENIZERS`. If not given, `"none"` of text in
            words, otherwise sacrebleu's default, `"13a"`.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file or an argument is not as described.
    """

    kind = "translation"
    main_metric = "bleu"

    def __init__(
        self,
        name,
        files,
        in_words=False,
        min_count=6,
        max_length=100,
        max_train=None,
        bleu_tokenizer=None,
    ):
        check_splits(files)
        for split, paths in files.items():
            needed = (1, 2) if split.startswith("test") else (2,)
            if isinstance(paths, str) or len(paths) not in needed:
                raise ValueError(
                    f"`files[{split!r}]` must be the paths of sentences and of their "
                    f"translations, a file each; got {paths!r}."
                )
        self.bleu_tokenizer = bleu_tokenizer or ("none" if in_words else "13a")
        if self.bleu_tokenizer not in BLEU_TOKENIZERS:
            raise ValueError(
                f"`bleu_tokenizer` must be one of {', '.join(BLEU_TOKENIZERS)}; got "
                f"{bleu_tokenizer!r}."
            )
        self.name = name
        self.splits = {
            split: read_parallel(*paths, in_words=in_words)
            for split, paths in files.items()
        }
        train = self.splits["train"]
        train = train.take(max_train) if max_train else train
        divide = str.split if in_words else split_joined
        translations = [divide(text) for text in train.labels]
        train, translations = _without_long(
            train, translations, max_length, files["train"][0]
        )
        self.splits["train"] = train
        counts = Counter(word for words in translations for word in words)
        vocabulary = [word for word, count in counts.items() if count >= min_count]
        if not vocabulary:
            raise ValueError(
                f"{files['train'][1]} has no word {min_count} times: with "
                f"`min_count={min_count}` there is nothing to learn. Give more "
                "sentences, or lower it."
            )
        vocabulary.sort(key=lambda word: (-counts[word], word))
        self.model_arguments = {"labels": vocabulary, "in_words": in_words}
        self._usual = _usual(train.labels, translations, counts)

    def metrics(self, predictions, split):
        """Returns BLEU, from 0 to 100; see `Task.metrics`.

        Args:
            predictions: A translation of each sentence, a string.
            split: A `Split` with labels.

        Raises:
            ImportError: sacrebleu is not installed.
        """
        if len(predictions) != len(split):
            raise ValueError(
                f"`predictions` has {len(predictions)} translations of {len(split)} "
                "sentences; give one for each."
            )
        score = sacrebleu().corpus_bleu(
            predictions, [split.labels], tokenize=self.bleu_tokenizer, force=True
        )
        return {"bleu": float(score.score)}

    def guesses(self, split):
        """Gives each sentence the same translation, a usual one.

        It is one of `"train"`, of median length: that whose words are most frequent.
        """
        return [self._usual] * len(split)

    def failure(self, predictions, split):
        """Says whether all translations are the same one; see `Task.failure`."""
        if len(set(predictions)) > 1 or predictions == split.labels:
            return None
        return f"it translates every sentence as {predictions[0]!r}"

    def labels_of(self, split):
        """Returns none: a word that is not known is no label that a model lacks."""
        return []

    def write_predictions(self, predictions, name, directory):
        """Writes a translation in each line; see `Task.write_predictions`."""
        path = os.path.join(directory, f"{name}.txt")
        with whole_file(path) as file:
            file.writelines(f"{text}\n" for text in predictions)
        return path


def sacrebleu():
    """Returns the library that computes BLEU.

    Raises:
        ImportError: It is not installed.
    """
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            "Translation needs sacrebleu: pip install -e '.[translation]'."
        ) from error
    return sacrebleu


def read_parallel(source, target=None, in_words=False):
    """Reads sentences and their translations, a line each.

    Args:
        source: A file; see `text_lines`.
        target: The file of the translations, or `None`.
        in_words: See `TranslationTask`.

    Returns:
        A `Split`: examples are lists of words, labels the lines of `target`, without
        spaces around them, or `None`.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: It is no such file, or a line is empty, or the files have different
            numbers of lines; names file and line.
    """
    sentences = _text_lines(source)
    labels = None if target is None else _text_lines(target)
    if labels is not None and len(labels) != len(sentences):
        raise ValueError(
            f"{source} has {len(sentences):,} lines and {target} {len(labels):,}: each "
            "sentence needs its translation in the same line of the other file."
        )
    divide = str.split if in_words else split_words
    return Split([divide(line) for line in sentences], labels)


def _text_lines(path):
    """Returns the lines of a file that has words, none of which is empty."""
    lines = [line.strip() for _, line in text_lines(path)]
    for number, line in enumerate(lines, 1):
        if not line:
            raise ValueError(
                f"{path}:{number} is empty. Remove the line, and the other "
                "language's line."
            )
        if "\0" in line:
            raise ValueError(
                f"{path}:{number} has a zero byte: it is no text, or not in UTF-8."
            )
    if not any(re.search(r"\w", line) for line in lines):
        raise ValueError(f"{path} has no words.")
    return lines


def _without_long(train, translations, max_length, path):
    """Leaves out pairs with more than `max_length` words on a side.

    Returns:
        The `Split`, and the words of its translations.
    """
    pairs = zip(train.examples, translations, strict=True)
    kept = [max(map(len, pair)) <= max_length for pair in pairs]
    if not any(kept):
        raise ValueError(
            f"{path}: every sentence, or its translation, has more than "
            f"`max_length={max_length}` words. Raise it."
        )

    def those(rows):
        return [row for row, keep in zip(rows, kept, strict=True) if keep]

    skipped = {}
    if not all(kept):
        reason = f"more than {max_length} words"
        skipped[reason] = len(kept) - sum(kept), f"{path}:{kept.index(False) + 1}"
    short = Split(those(train.examples), those(train.labels), skipped=skipped)
    return short, those(translations)


def _usual(texts, translations, counts):
    """Returns the text of median length whose words are most frequent."""
    median = statistics.median_low([len(words) for words in translations])
    usual = max(
        (i for i, words in enumerate(translations) if len(words) == median),
        key=lambda i: sum(counts[word] for word in translations[i]),
    )
    return texts[usual]
