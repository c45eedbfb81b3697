r"""Corpus to a directory of examples on many machines, with Apache Beam.

The pipeline cuts the sources into the same chunks and builds the same examples as
`prepare_dataset`; only their distribution over files differs. The paths of corpus and
output must be the same on all machines (a shared or mounted file system). A vocabulary
that is not given is trained where the pipeline is launched.

    pip install -e '.[beam]'
    python -m keras_corrupt.data.beam --corpus 'text/*.txt' --output examples \
        --runner FlinkRunner --flink_master host:8081

Flags that this command does not know go to Beam, which rejects flags that it does not
know either.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import tyro

from keras_corrupt.commands.bounds import Bounds, check_bounds
from keras_corrupt.commands.frame import command
from keras_corrupt.data.chunks import (
    Chunk,
    EncodedChunk,
    SpecialIds,
    Totals,
    build_chunk,
    read_chunks,
    tokenize_chunk,
)
from keras_corrupt.data.info import DatasetInfo, Shard, load_dataset_info
from keras_corrupt.data.plan import Plan
from keras_corrupt.data.prepared_directory import (
    ShardWriter,
    describe_sources,
    find_prepared,
    finish_directory,
    new_directory,
)
from keras_corrupt.data.segmentation import (
    check_lost_text,
    describe_segmentation,
    summary,
    unknown_examples,
    warnings,
)
from keras_corrupt.data.sources import Source
from keras_corrupt.tokenizers import load

try:
    import apache_beam as beam
except ImportError as error:
    raise ImportError(
        "keras_corrupt.data.beam needs Apache Beam: pip install keras-corrupt[beam]"
    ) from error


def prepare_dataset_with_beam(
    plan: Plan,
    output: str | os.PathLike,
    *,
    num_shards: int = 16,
    beam_options: Sequence[str] = (),
) -> DatasetInfo:
    """Builds a directory of training examples with a Beam pipeline.

    Args:
        plan: Corpus and settings.
        output: The directory; missing, empty, or made by an earlier call.
        num_shards: Training files. A worker holds one in memory while it writes it.
        beam_options: Beam's own flags, such as `["--runner=FlinkRunner"]`.

    Returns:
        The description of the directory, as `prepare_dataset` returns it.

    Raises:
        CorpusError: If the corpus cannot be found.
        DatasetError: If `output` holds something else, or the vocabulary does not know
            more than 5% of the text's characters.
        ValueError: If an argument is out of range.
    """
    check_bounds({"num_shards": num_shards}, {"num_shards": Bounds(1)})
    output = Path(output)
    sources = plan.sources()
    tokenizer = plan.given_tokenizer()
    settings = plan.settings(tokenizer) | {"num_shards": num_shards}
    if prepared := find_prepared(output, settings, sources):
        return prepared
    options = beam.options.pipeline_options.PipelineOptions(list(beam_options))
    with new_directory(output) as partial:
        held_out = plan.held_out_lines(sources)
        tokenizer = plan.make_tokenizer(tokenizer, sources)
        tokenizer.save(partial)
        segmentation = describe_segmentation(tokenizer, held_out)
        check_lost_text(segmentation, tokenizer.kind, bool(settings["vocabulary"]))
        description = {
            "settings": settings,
            "corpus": describe_sources(sources),
            "left_out": sources.left_out,
            "segmentation": segmentation,
        }
        with beam.Pipeline(options=options) as pipeline:
            _build(pipeline, plan, sources, partial, num_shards, description)
    return load_dataset_info(output)


def _build(
    pipeline: beam.Pipeline,
    plan: Plan,
    sources: Sequence[Source],
    directory: Path,
    num_shards: int,
    description: dict,
) -> None:
    read = (
        pipeline
        | "sources" >> beam.Create(list(enumerate(sources)))
        | "spread sources" >> beam.Reshuffle()
        | "read" >> beam.FlatMap(_read).with_outputs("skipped", main="chunks")
    )
    encoded = (
        read.chunks
        | "spread chunks" >> beam.Reshuffle()
        | "encode"
        >> beam.ParDo(_Encode(directory, plan, num_shards)).with_outputs(
            "totals", main="records"
        )
    )
    totals = encoded.totals | "sum" >> beam.CombineGlobally(_SumTotals(directory))
    skipped = read.skipped | "skipped" >> beam.CombineGlobally(_sum_pairs)
    shards = (
        encoded.records
        | "group" >> beam.GroupByKey()
        | "write" >> beam.Map(_write_shard, directory)
    )
    _ = (
        pipeline
        | "once" >> beam.Create([directory])
        | "finish"
        >> beam.Map(
            _finish,
            description,
            totals=beam.pvalue.AsSingleton(totals),
            skipped=beam.pvalue.AsSingleton(skipped),
            shards=beam.pvalue.AsList(shards),
        )
    )


def _read(numbered_source: tuple[int, Source]) -> Iterator:
    number, source = numbered_source
    yield from read_chunks(source, number)
    skipped = source.skipped["lines"], source.skipped["rows"]
    yield beam.pvalue.TaggedOutput("skipped", skipped)


def _sum_pairs(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    return tuple(map(sum, zip((0, 0), *pairs, strict=True)))


class _Encode(beam.DoFn):
    def __init__(self, directory: Path, plan: Plan, num_shards: int):
        self._directory = directory
        self._plan = plan
        self._num_shards = num_shards

    def setup(self):
        self._tokenizer = load(self._directory)

    def process(self, chunk: Chunk) -> Iterator:
        encoded = build_chunk(
            tokenize_chunk(chunk, self._tokenizer),
            max_length=self._plan.sequence_length,
            validation_fraction=self._plan.validation_fraction,
            seed=self._plan.seed,
            special=SpecialIds.of(self._tokenizer),
        )
        totals = Totals(self._tokenizer.vocabulary_size)
        totals.add(encoded)
        yield beam.pvalue.TaggedOutput("totals", totals)
        yield from self._keyed(chunk, encoded)

    def _keyed(self, chunk: Chunk, encoded: EncodedChunk) -> Iterator:
        place = chunk.source, chunk.index
        shard = zlib.crc32(f"{place}".encode()) % self._num_shards
        if encoded.train.records:
            file = f"train-{shard:05d}.tfrecord"
            yield ("train", file), (place, encoded.train.records)
        if encoded.validation.records:
            file = "validation.tfrecord"
            yield ("validation", file), (place, encoded.validation.records)


class _SumTotals(beam.CombineFn):
    def __init__(self, directory: Path):
        self._directory = directory

    def create_accumulator(self) -> Totals:
        return Totals(load(self._directory).vocabulary_size)

    def add_input(self, accumulator: Totals, element: Totals) -> Totals:
        accumulator.merge(element)
        return accumulator

    def merge_accumulators(self, accumulators) -> Totals:
        merged = self.create_accumulator()
        for accumulator in accumulators:
            merged.merge(accumulator)
        return merged

    def extract_output(self, accumulator: Totals) -> Totals:
        return accumulator


def _write_shard(keyed_chunks, directory: Path) -> tuple[str, Shard]:
    (split, file), chunks = keyed_chunks
    writer = ShardWriter(directory / file)
    for _, records in sorted(chunks):
        for record in records:
            writer.write(record)
    return split, writer.close()


def _finish(
    directory: Path,
    description: dict,
    *,
    totals: Totals,
    skipped: tuple[int, int],
    shards: list[tuple[str, Shard]],
) -> None:
    by_split = {"train": [], "validation": []}
    for split, shard in sorted(shards, key=lambda item: item[1].file):
        by_split[split].append(shard)
    finish_directory(
        directory,
        **description,
        tokenizer=load(directory),
        totals=totals,
        shards=by_split,
        skipped=skipped,
    )


@command("Run the same command again: it begins anew.")
def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line.

    Args:
        arguments: Flags; by default the process's.
    """
    (plan, output, num_shards), beam_options = tyro.cli(
        _arguments,
        args=arguments,
        prog="python -m keras_corrupt.data.beam",
        description="Prepares a data set with Apache Beam. Beam's own flags (--runner "
        "and others) may follow.",
        use_underscores=True,
        return_unknown_args=True,
    )
    _reject_unknown(beam_options)
    info = prepare_dataset_with_beam(
        plan, output, num_shards=num_shards, beam_options=beam_options
    )
    print(f"{output}: {info.train.examples:,} training examples")
    print(summary(info.segmentation))
    if number := info.segmentation["unknown_examples"]:
        print(unknown_examples(number))
    vocabulary_given = bool(info.settings["vocabulary"])
    kind = info.settings["tokenizer"]
    for line in warnings(info.segmentation, kind, vocabulary_given):
        print(line)


def _arguments(
    plan: Annotated[Plan, tyro.conf.arg(name="")], output: str, num_shards: int = 16
) -> tuple[Plan, str, int]:
    """Returns the values of the command's flags.

    Args:
        plan: The corpus, and how its text becomes examples.
        output: The directory to make.
        num_shards: Training files.
    """
    return plan, output, num_shards


def _reject_unknown(beam_options: list[str]) -> None:
    # Beam only logs flags that it does not know.
    options = beam.options.pipeline_options.PipelineOptions(beam_options)
    parsed = options.get_all_options(retain_unknown_options=False)
    for option in beam_options:
        name = option.removeprefix("--").split("=")[0].removeprefix("no_")
        if option.startswith("--") and name not in parsed:
            raise ValueError(f"unknown flag {option}: neither ours nor Beam's")


if __name__ == "__main__":
    main()
