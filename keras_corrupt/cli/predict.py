"""`keras-corrupt predict`: a fine-tuned model answers a file, row by row."""

import dataclasses
import itertools
import os
from typing import Literal

import tyro

from keras_corrupt.cli import rows
from keras_corrupt.commands.bounds import Bounds, check_bounds
from keras_corrupt.commands.frame import command
from keras_corrupt.files.streams import standard_output
from keras_corrupt.files.whole import check_plain, whole_file


@dataclasses.dataclass(frozen=True)
class Config:
    """Answers each row of a file with a fine-tuned model, in the file's order.

    An answer is a line of JSON: labels and their probabilities, or a score, tags, the
    span that answers a question, a tree, a translation, a vector.
    """

    model: tyro.conf.Positional[str]
    """A fine-tuned model: the directory of its preset, or hf://owner/name."""
    file: tyro.conf.Positional[str | None] = None
    """The file to read, plain or compressed (.gz, .xz, .zst); the standard input if not
    given."""
    format: Literal[rows.FORMATS] | None = None
    """Whether a row is a line of text, one of a table, or a sentence with a word in
    each line (conll); if not given, the file's name tells."""
    columns: tuple[str, ...] = ()
    """The columns of the model's inputs, in their order; if not given those that have
    the inputs' names: text and second_text, question and context, or words. Numbers
    from 0 are for a file without a header."""
    keep: tuple[str, ...] = ()
    """Columns of the file to write before each answer, such as an id."""
    task: str | None = None
    """The task to do, for a model of several."""
    output: str | None = None
    """The file to write, which appears when it is whole; the standard output if not
    given."""
    to: Literal["jsonl", "csv"] | None = None
    """The format to write; CSV if the output is named so, and else JSON lines."""
    batch_size: int = 64
    """Rows that are read, answered and written at once."""
    system: str | None = None
    """`module:Class` of the model, where it is not one of this package."""


def predict(config):
    """Answers a file: see `Config`."""
    check_bounds(vars(config), {"batch_size": Bounds(1)})
    if config.file and not os.path.isfile(config.file):
        raise ValueError(f"{config.file} is not a file. Give the path of one.")
    folder = os.path.dirname(config.output or "") or "."
    if not os.path.isdir(folder):
        raise ValueError(
            f"--output {config.output}: there is no directory {folder}. Make it."
        )
    if os.path.isdir(config.output or ""):
        raise ValueError(f"--output {config.output} is a directory. Name a file in it.")
    check_plain(config.output or "", "answers")
    both = config.file, config.output
    if all(both) and os.path.exists(config.output) and os.path.samefile(*both):
        raise ValueError(f"--output {config.output} is the file to read. Name another.")
    answering = load(config.model, config.task, config.system)
    all_rows = rows.read(
        config.file,
        config.format or rows.format_of(config.file),
        answering,
        config.columns,
        config.keep,
    )
    named_csv = (config.output or "").lower().endswith(".csv")
    form = config.to or ("csv" if named_csv else "jsonl")
    with whole_file(config.output) if config.output else standard_output() as file:
        write = rows.writer(file, form)
        for batch in in_batches(all_rows, config.batch_size, answering.group):
            for row, answer in zip(
                batch, answers(answering, batch, config.batch_size), strict=True
            ):
                if both := [*(row.kept.keys() & answer)]:
                    raise ValueError(
                        f"--keep {both[0]}: the answer has a column of this name, too. "
                        "Rename the file's."
                    )
                write(row.kept | answer)
            file.flush()


def load(model, task=None, system=None):
    """Loads a model, and returns its `Answering`.

    Raises:
        ValueError: It is no preset, or cannot answer rows.
    """
    import keras

    from keras_corrupt.models import load_preset

    loaded = load_preset(model, keras.Model, system)
    if not hasattr(loaded, "answering"):
        raise ValueError(
            f"{model}: {type(loaded).__name__} answers no rows of text. Give a "
            "fine-tuned model, such as keras-corrupt finetune makes."
        )
    return loaded.answering(task)


def in_batches(all_rows, size, group=None):
    """Divides rows into lists of `size` rows.

    Args:
        all_rows: Iterable of `Row`.
        size: Rows in a list; a list has more where rows belong together.
        group: See `Answering`.
    """
    together = ([row] for row in all_rows)
    if group:
        grouped = itertools.groupby(all_rows, lambda row: group(row.example))
        together = (list(members) for _, members in grouped)
    batch = []
    for members in together:
        batch += members
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def answers(answering, batch, batch_size):
    """Returns the answers of rows; an error names the row that causes it."""
    try:
        return answering.answer([row.example for row in batch], batch_size)
    except ValueError:
        for row in batch:
            try:
                answering.answer([row.example], batch_size)
            except ValueError as error:
                raise ValueError(f"{row.where}: {error} Mend the row.") from error
        raise


@command("Run the same command again: it begins anew.")
def main(prog="keras-corrupt predict"):
    """Runs the command line of `prog`, the name of the program."""
    predict(tyro.cli(Config, prog=prog, use_underscores=True))


if __name__ == "__main__":
    main()
