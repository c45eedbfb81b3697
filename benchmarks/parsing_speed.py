"""How fast a parser predicts trees, and what of that time its spanning trees take.

    pip install -e '.[parsing]' networkx
    python -m benchmarks.parsing_speed RUN/preset dev.conllu --output RESULTS

Sentences are predicted in batches of 64 as `CrossViewParser.predictions` does it. Then
the same scores become trees by networkx, a tree by each library in turn; their trees
must have equal scores. Prints sentences and words a second, and milliseconds a tree by
length.
"""

import dataclasses
import statistics
import time
from collections import defaultdict
from pathlib import Path

import networkx
import numpy as np
import tyro

from benchmarks.machine import description
from keras_corrupt.cross_view import CrossViewParser
from keras_corrupt.cross_view.parsing.trees import best_heads
from keras_corrupt.cross_view.tasks.dependencies import read_dependencies
from keras_corrupt.cross_view.text.sentences import Sentences

#: Greatest lengths of sentences that are told together.
LENGTHS = (10, 20, 40, 80)


@dataclasses.dataclass
class Settings:
    """What to measure."""

    preset: tyro.conf.Positional[str]
    """Directory of a parser."""
    sentences: tyro.conf.Positional[str]
    """CoNLL-U file."""
    output: str
    """Directory for the table."""
    compared: int = 20
    """Sentences of each length of which networkx makes trees, too."""


def networkx_heads(scores):
    """Returns what `best_heads` does, by networkx."""
    graph = networkx.DiGraph()
    words = len(scores)
    alone = words * np.ptp(scores) + 1.0
    for dependent, row in enumerate(scores, 1):
        for head, score in enumerate(row):
            if head != dependent:
                weight = float(score) - (0.0 if head else alone)
                graph.add_edge(head, dependent, weight=weight)
    tree = networkx.maximum_spanning_arborescence(graph)
    return [next(tree.predecessors(word)) for word in range(1, words + 1)]


def timed(function, *args):
    start = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - start


def predict(parser, sentences):
    """Returns each sentence's scores of heads, and the seconds of both parts."""
    batches = parser.batches(Sentences(sentences), batch_size=64)
    scores, network, decoding = [None] * len(sentences), 0.0, 0.0
    for number in range(len(batches)):
        inputs, _ = batches.batch(number)
        logits, seconds = timed(
            lambda inputs=inputs: np.array(parser.predict_on_batch(inputs)["logits"])
        )
        network += seconds
        for i, row in zip(batches.rows(number), logits, strict=False):
            words = len(sentences[i])
            _, seconds = timed(parser.decoded, row[:words])
            decoding += seconds
            by_relation = row[:words].reshape(words, -1, len(parser.labels))
            scores[i] = by_relation.max(axis=-1)[:, : words + 1]
    return scores, network, decoding


def compare(scores, count):
    """Yields (longest length, trees, ms by ours, ms by networkx): medians."""
    by_length = defaultdict(list)
    for matrix in scores:
        longest = next((n for n in LENGTHS if len(matrix) <= n), None)
        if longest and len(by_length[longest]) < count:
            by_length[longest].append(matrix)
    for longest, matrices in sorted(by_length.items()):
        times = []
        for matrix in matrices:
            ours, our_seconds = timed(best_heads, matrix)
            theirs, their_seconds = timed(networkx_heads, matrix)
            each = np.arange(len(matrix))
            if not np.isclose(matrix[each, ours].sum(), matrix[each, theirs].sum()):
                raise AssertionError("The trees have different scores.")
            times.append((our_seconds, their_seconds))
        ours, theirs = (1000 * statistics.median(t) for t in zip(*times, strict=True))
        yield longest, len(matrices), ours, theirs


def main(settings):
    parser = CrossViewParser.from_preset(settings.preset)
    sentences = read_dependencies(settings.sentences).examples
    predict(parser, sentences)  # compiles
    scores, network, decoding = predict(parser, sentences)
    seconds, words = network + decoding, sum(map(len, sentences))
    lines = [
        f"{description()}\n",
        f"{len(sentences):,} sentences, {words:,} words in {seconds:.1f} s: "
        f"{len(sentences) / seconds:,.0f} sentences and {words / seconds:,.0f} words a "
        f"second; {network / seconds:.0%} of it in the network, "
        f"{decoding / seconds:.0%} in trees.\n",
        "| words | trees | ms | networkx, ms | of networkx's time |",
        "|---|---:|---:|---:|---:|",
    ]
    for longest, count, ours, theirs in compare(scores, settings.compared):
        cells = f"{ours:.3f} | {theirs:.1f} | 1/{theirs / ours:,.0f}"
        lines.append(f"| to {longest} | {count} | {cells} |")
    text = "\n".join(lines) + "\n"
    print(text)
    output = Path(settings.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "parsing_speed.md").write_text(text)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
