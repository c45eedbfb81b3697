"""Tasks named in a TOML file: a table for each, with its files and columns.

    [reviews]                   # the task's name
    kind = "text"               # a label for a text, or a pair of texts
    train = "reviews.csv"       # beside the TOML file, or an absolute path
    text = "review"             # the column of the text
    label = "stars"             # and the column of the label

    [chunks]
    kind = "tagging"            # a tag for each word: CoNLL's columns
    train = "train.txt"
    dev = "dev.txt"
    scheme = "bio"

    [questions]
    kind = "questions"          # SQuAD's format
    train = "train-v2.0.json"
    dev = "dev-v2.0.json"
    version = "2.0"

`text` takes the arguments of `TableTask` and `Columns`, `tagging` the arguments of
`TaggingTask`, `questions` the arguments of `SquadTask`.
"""

from pathlib import Path

import tomllib

from keras_corrupt.files.text import read_text
from keras_corrupt.tasks.conll import TaggingTask
from keras_corrupt.tasks.squad import SquadTask
from keras_corrupt.tasks.tables import Columns, TableTask
from keras_corrupt.tasks.task import check_name

_FILES = ("train", "dev", "test")
_COLUMNS = ("text", "second_text", "label", "id")


def _text(name, files, text="text", label="label", second_text=None, id=None, **kwargs):
    columns = Columns(text, second_text, label, id)
    if "score_range" in kwargs:
        score_range = kwargs["score_range"]
        if not isinstance(score_range, list) or len(score_range) != 2:
            raise ValueError(f"`score_range` must be two numbers; got {score_range!r}.")
        kwargs["score_range"] = tuple(score_range)
    for value in kwargs.get("labels", ()):
        if not isinstance(value, str):
            raise ValueError(f'`labels` must be strings, such as "{value}".')
    return TableTask(columns=columns, name=name, **files, **kwargs)


def _questions(name, files, **kwargs):
    task = SquadTask(files, **kwargs)
    task.name = name
    return task


#: Kind -> what makes such a task, and the arguments beside files that it takes.
KINDS = {
    "text": (
        _text,
        (*_COLUMNS, "labels", "regression", "score_range", "dev_fraction"),
    ),
    "tagging": (TaggingTask, ("word_column", "tag_column", "scheme")),
    "questions": (_questions, ("version",)),
}


def read_task_file(path, kinds=KINDS):
    """Reads the tasks of a TOML file; see the module.

    Args:
        path: The file. Paths in it are relative to its folder.
        kinds: The kinds of tasks that it can name, as `KINDS`.

    Returns:
        A list of `Task`.

    Raises:
        FileNotFoundError: The file, or one that it names, is not there.
        ValueError: It is no such file, or a task in it cannot be.
    """
    text = read_text(path)
    try:
        content = tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is not a TOML file: {error}.") from error
    if not content:
        raise ValueError(f"{path} names no task: write a table for each, `[name]`.")
    return [_task(Path(path), *item, kinds) for item in content.items()]


def _task(path, name, table, kinds):
    where = f"{path}, [{name}]"
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table with a task's `kind` and files.")
    check_name(name)
    table = dict(table)
    kind = table.pop("kind", None)
    if kind not in kinds:
        raise ValueError(f"{where}: `kind` must be one of {[*kinds]}; got {kind!r}.")
    make, arguments = kinds[kind]
    if unknown := sorted(table.keys() - {*_FILES, *arguments}):
        raise ValueError(
            f"{where} has {', '.join(map(repr, unknown))}; a task of the kind {kind!r} "
            f"takes {', '.join((*_FILES, *arguments))}."
        )
    files = {split: table.pop(split) for split in _FILES if split in table}
    for split, file in files.items():
        if not isinstance(file, str):
            raise ValueError(f"{where}: `{split}` must be the path of a file.")
        files[split] = str(path.parent / file)
    if "train" not in files:
        raise ValueError(f"{where} must name the file of its examples as `train`.")
    try:
        return make(name, files, **table)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from error
