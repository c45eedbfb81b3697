"""`python -m keras_corrupt.data`: prepare a data set, or look into one."""

import itertools
import os
from typing import Annotated, Literal

import numpy as np
import tyro

from keras_corrupt.commands.frame import command
from keras_corrupt.data import segmentation
from keras_corrupt.data.info import DatasetError, DatasetInfo, load_dataset_info
from keras_corrupt.data.plan import Plan
from keras_corrupt.data.prepare import prepare_dataset
from keras_corrupt.tokenizers import load


def prepare(
    plan: Annotated[Plan, tyro.conf.arg(name="")],
    output: str,
    shard_bytes: int = 100_000_000,
    workers: int | None = None,
    progress: bool = True,
) -> None:
    """Builds a directory of training examples from a corpus.

    Args:
        plan: The corpus, and how its text becomes examples.
        output: The directory to make.
        shard_bytes: Size of a training shard.
        workers: Processes; by default one for each available CPU, four at most, and one
            for little text.
        progress: Print a line of progress, and how held-out text is cut into tokens.
    """
    # TensorFlow Text brings TensorFlow, which would take a GPU's memory.
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    info = prepare_dataset(
        **vars(plan),
        output=output,
        shard_bytes=shard_bytes,
        workers=workers,
        progress=progress,
    )
    print(_summary(info))


def show(
    directory: Annotated[str, tyro.conf.Positional],
    examples: int = 3,
    split: Literal["train", "validation"] = "train",
    preset: str | None = None,
    system: str | None = None,
) -> None:
    """Describes a prepared directory, and prints examples as text and corrupted.

    Args:
        directory: The output of prepare.
        examples: How many to print; 0 for the description alone.
        split: Which split to print from.
        preset: A trained model, directory or name, whose corruption and judgement to
            print; without one the examples are printed masked.
        system: `module:Class` of the preset's model, where it is not one of this
            package.
    """
    from keras_corrupt.data.features import EXAMPLES, RecordFormat
    from keras_corrupt.data.reading import Examples, read
    from keras_corrupt.data.show import masked_examples
    from keras_corrupt.models import Pretrainer, load_preset

    info = load_dataset_info(directory)
    info.check_files()
    tokenizer = load(directory)
    model = load_preset(preset, Pretrainer, system) if preset else None
    own = getattr(model, "tokenizer", None)
    if model and (own is None or own.fingerprint != info.tokenizer_fingerprint):
        raise DatasetError(
            f"preset={preset!r} has no vocabulary, or another one than {directory}. "
            "Name a model that was trained on these examples, or leave it out."
        )
    print(_summary(info))
    shards = info.split(split).shards
    stored = Examples(
        [str(info.directory / shard.file) for shard in shards],
        [shard.examples for shard in shards],
        RecordFormat(EXAMPLES),
    )
    numbers = np.arange(min(examples, stored.total))
    if not numbers.size:
        return
    inputs = read([stored], 0 * numbers, numbers, info.max_length, info.vocabulary_size)
    if model is None:
        kind, corrupted = "masked", masked_examples(tokenizer, inputs)
    else:
        kind, corrupted = "corrupted", model.describe_examples(inputs)
    for number, text in enumerate(corrupted):
        length = inputs["padding_mask"][number].sum()
        pairs = zip(
            inputs["segment_ids"][number], inputs["token_ids"][number], strict=True
        )
        pairs = itertools.islice(pairs, int(length))
        print(f"\nexample {number}: {length} tokens")
        for segment, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
            ids = [token_id for _, token_id in group]
            print(f"  segment {segment} ({len(ids)}): {tokenizer.decode(ids)}")
        print(f"  {kind}: {text}")


def _summary(info: DatasetInfo) -> str:
    lines = [
        f"{info.directory}: examples of up to {info.max_length} tokens, vocabulary of "
        f"{info.vocabulary_size:,}"
    ]
    for name in ("train", "validation"):
        split = info.split(name)
        words = "" if split.words is None else f"{split.words:,} words, "
        lines.append(
            f"  {name}: {split.documents:,} documents, {split.examples:,} examples, "
            f"{split.tokens:,} tokens, {words}"
            f"{split.text_bytes / 1e6:,.2f} MB of text, "
            f"{len(split.shards)} file(s)"
        )
    lines.append(f"  {segmentation.summary(info.segmentation)}")
    if number := info.segmentation["unknown_examples"]:
        lines.append(f"  {segmentation.unknown_examples(number)}")
    lines.append(f"  from {info.describe_corpus()}")
    return "\n".join(lines)


@command("Run the same command again: it begins anew.")
def main(prog: str = "python -m keras_corrupt.data") -> None:
    """Runs the command line of `prog`, the name of the program."""
    tyro.extras.subcommand_cli_from_dict(
        {"prepare": prepare, "show": show},
        prog=prog,
        use_underscores=True,
    )


@command("Run the same command again: it begins anew.")
def main_prepare(prog: str) -> None:
    """Runs the command line of `prog`, which does nothing but prepare."""
    tyro.cli(prepare, prog=prog, use_underscores=True)


if __name__ == "__main__":
    main()
