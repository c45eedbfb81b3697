"""Tagged sentences in CoNLL's column files, and the task of tagging like them."""

import os
import re
from collections import Counter

from keras_corrupt.files.text import text_lines
from keras_corrupt.files.whole import whole_file
from keras_corrupt.tasks.tagging_schemes import SCHEMES, convert, is_span_tag
from keras_corrupt.tasks.task import Split, Task, check_splits

# What begins or ends a document, and with that a sentence.
_DOCUMENT = re.compile(r" *-DOCSTART-(?!\S)|#(begin|end) document")
# Comments even where they have as many columns as words have.
_COMMENT = re.compile(r"# ?[\w.:-]+( id)? =|# [\w.:-]+( id)?=|# id ")
_CONLLU_ID = re.compile(r"\d+(-\d+|\.\d+)?")


class TaggingTask(Task):
    """Tagging the words of column files.

    Spans (chunks, entities) are measured by the F1 of whole spans that conlleval and
    seqeval report, and other tags by accuracy. A tag that only other splits than
    `"train"` have cannot be learned: it counts as wrong (`unseen`).

    Args:
        name: The task's name in results.
        files: Split name -> path; see `Task.splits` and `read_conll`. For a split
            whose name begins with `"test"`, a file of words alone will do.
        word_column: See `read_conll`.
        tag_column: See `read_conll`.
        scheme: `"bio"` or `"bioes"` for spans, converted from what the files have;
            `"plain"` for anything else.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file or an argument is not as described.
    """

    kind = "tagging"

    def __init__(self, name, files, word_column=None, tag_column=None, scheme="bio"):
        check_splits(files)
        self.name = name
        self.scheme = scheme
        self.main_metric = "accuracy" if scheme == "plain" else "f1"
        self.splits = {
            split: read_conll(
                path,
                word_column,
                tag_column,
                scheme,
                "optional" if split.startswith("test") else "needed",
            )
            for split, path in files.items()
        }
        counts = Counter(self.labels_of(self.splits["train"]))
        if len(counts) < 2:
            raise ValueError(
                f"{files['train']} has no tag but {[*counts]}: there is nothing to "
                "learn. Is `tag_column` right?"
            )
        self.model_arguments = {"labels": sorted(counts)}
        self.most_frequent = counts.most_common(1)[0][0]

    def metrics(self, predictions, split):
        """Returns F1, precision and recall of spans, and accuracy of tags, in percent.

        See `Task.metrics`. Invalid sequences of tags are read as conlleval does.
        """
        from seqeval import metrics as seqeval  # here, for it takes seconds

        for words, tags in zip(split.examples, predictions, strict=True):
            if len(words) != len(tags):
                raise ValueError(
                    f"`predictions` has {len(tags)} tags for the {len(words)} words "
                    f"{words!r}; give one for each."
                )
        values = {"accuracy": seqeval.accuracy_score(split.labels, predictions)}
        if self.scheme != "plain":
            for metric in ("f1", "precision", "recall"):
                score = getattr(seqeval, f"{metric}_score")
                values[metric] = score(split.labels, predictions, zero_division=0)
        return {name: 100.0 * float(value) for name, value in values.items()}

    def guesses(self, split):
        """Tags every word with the tag that most words of `"train"` have."""
        return [[self.most_frequent] * len(words) for words in split.examples]

    def failure(self, predictions, split):
        """Says whether no span is found, or none rightly; see `Task.failure`.

        Of plain tags, whether all words get the same one. Nearly all words do where
        spans are rare, and a tagger that finds few of them has learned.
        """
        if predictions == split.labels:
            return None
        tags = {tag for tags in predictions for tag in tags}
        if len(tags) == 1:
            return f"it tags every word as {tags.pop()!r}"
        if self.scheme != "plain" and not self.metrics(predictions, split)["f1"]:
            return "no span that it finds is right"
        return None

    def labels_of(self, split):
        return [tag for tags in split.labels or [] for tag in tags]

    def write_predictions(self, predictions, name, directory):
        r"""Writes rows of word, tag (where known) and predicted tag.

        The columns are separated by tabs (`conlleval -d '\t'`), since words may have
        spaces; an empty line ends each sentence. See `Task.write_predictions`.
        """
        split = self.splits[name]
        columns = [split.examples, split.labels, predictions]
        columns = [column for column in columns if column is not None]
        path = os.path.join(directory, f"{name}.conll")
        with whole_file(path) as file:
            for sentence in zip(*columns, strict=True):
                for row in zip(*sentence, strict=True):
                    file.write("\t".join(row) + "\n")
                file.write("\n")
        return path


def read_conll(path, word_column=None, tag_column=None, scheme="bio", tags="needed"):
    r"""Reads sentences from a file with a word in each line and an empty line between.

    Columns are separated by tabs, or in lines without one by spaces. Lines of white
    space alone are empty lines. `-DOCSTART-` lines and comments are left out; so are,
    of CoNLL-U, multi-word tokens (`1-2`) and empty nodes (`1.1`). A comment begins with
    `#` and is `# key = value`, `#begin document` or `#end document`; or it stands
    before a sentence's first word and has other columns than words have, so that a word
    `#` or `#hashtag` stays one.

    A sentence with a row that lacks its word or its tag is left out whole, since its
    other words would be read in a wrong context; `Split.skipped` counts them. Where a
    column is counted from the end, such a row is one with other columns than most.

    Args:
        path: A file; see `text_lines`.
        word_column: The words' column, counted from 0, or from the end if negative.
            By default 0; of CoNLL-U 1, the form.
        tag_column: The tags' column, counted likewise. By default -1, the last; of
            CoNLL-U 3, the universal part of speech.
        scheme: `"bio"` or `"bioes"`: tags are spans in any of IOB1, BIO, BIOES and
            BILOU, and are converted. `"plain"`: tags are taken as they are.
        tags: `"needed"`; `"optional"`, so that a file whose rows are single words is
            one without tags; or `"unread"`.

    Returns:
        A `Split`: examples are lists of words, labels lists of tags, or all `None`.

    Raises:
        ValueError: An argument is wrong, or the file is not such a file.
    """
    if scheme not in (*SCHEMES, "plain"):
        raise ValueError(
            f"`scheme` must be one of {[*SCHEMES, 'plain']}; got {scheme!r}."
        )
    lines = [line for _, line in text_lines(path)]
    conllu = _is_conllu(lines)
    word_column = (1 if conllu else 0) if word_column is None else word_column
    tag_column = (3 if conllu else -1) if tag_column is None else tag_column
    sentences = list(_sentences(lines, conllu))
    if not sentences:
        raise ValueError(f"{path} has no sentence.")
    widths = Counter(len(row) for rows in sentences for _, row in rows)
    if tags == "optional" and [*widths] == [1]:
        word_column, tag_column = 0, None
    if tags == "unread":
        tag_column = None
    columns = [c for c in (word_column, tag_column) if c is not None]
    from_the_end = min(columns) < 0
    usual = max(widths, key=lambda width: (widths[width], width))
    width = usual if from_the_end else max(widths)
    if any(not -width <= c < width for c in columns):
        raise ValueError(
            f"{path} has {width} columns, counted from 0; it has no "
            f"`word_column={word_column}` or no `tag_column={tag_column}`."
        )
    if len({c % width for c in columns}) < len(columns):
        raise ValueError(
            f"{path}: `word_column={word_column}` and `tag_column={tag_column}` are "
            f"the same of the {width} columns that most rows have."
        )
    least = width if from_the_end else max(columns) + 1
    examples, labels, skipped = [], [], []
    for rows in sentences:
        faulty = [
            number
            for number, row in rows
            if not least <= len(row) <= width or not all(row[c] for c in columns)
        ]
        if faulty:
            skipped.append(f"{path}:{faulty[0]}")
            continue
        examples.append([row[word_column] for _, row in rows])
        if tag_column is not None:
            sentence_tags = [row[tag_column] for _, row in rows]
            labels.append(_in_scheme(sentence_tags, scheme, f"{path}:{rows[0][0]}"))
    if not examples:
        raise ValueError(
            f"{path}: every sentence has a row without a word or a tag, the first in "
            f"line {skipped[0].rpartition(':')[2]}. Are `word_column` and `tag_column` "
            "right?"
        )
    reason = "a row that lacks its word" + " or its tag" * (tag_column is not None)
    return Split(
        examples,
        labels if tag_column is not None else None,
        skipped={reason: (len(skipped), skipped[0])} if skipped else {},
    )


def _is_conllu(lines):
    first = next((line for line in lines if line and line[0] != "#"), "")
    row = first.split("\t")
    return len(row) == 10 and _CONLLU_ID.fullmatch(row[0]) is not None


def _sentences(lines, conllu):
    """Yields the `(line number, columns)` of each sentence's rows."""
    shapes = {_shape(line) for line in lines if _is_row(line) and line[0] != "#"}
    rows = []
    for number, line in enumerate(lines, 1):
        if not _is_row(line):
            if rows:
                yield rows
            rows = []
        elif conllu:
            row = _columns(line)
            if line[0] != "#" and not _is_not_a_word(row[0]):
                rows.append((number, row))
        elif rows or not _is_comment(line, shapes):
            rows.append((number, _columns(line)))
    if rows:
        yield rows


def _is_row(line):
    return bool(line.strip()) and not _DOCUMENT.match(line)


def _is_comment(line, shapes):
    """Whether a line before a sentence's first word is no word, of the others' shapes.

    A word `#` or `#hashtag` has their columns.
    """
    return line[0] == "#" and bool(
        _COMMENT.match(line) or (shapes and _shape(line) not in shapes)
    )


def _shape(line):
    """Returns what tells a word's row from a comment: how many columns, and how cut."""
    return "\t" in line, len(_columns(line))


def _columns(line):
    if "\t" in line:
        return line.split("\t")
    return [column for column in line.split(" ") if column] or [""]


def _is_not_a_word(conllu_id):
    match = _CONLLU_ID.fullmatch(conllu_id)
    return match is not None and match[1] is not None


def _in_scheme(tags, scheme, where):
    if scheme == "plain":
        return tags
    wrong = [tag for tag in tags if not is_span_tag(tag)]
    if wrong:
        raise ValueError(
            f"The sentence at {where} has the tag {wrong[0]!r}, which says nothing of "
            "a span (such as 'B-NP'). Pass `scheme=\"plain\"` for tags of words, or "
            "another `tag_column`."
        )
    return convert(tags, scheme)
