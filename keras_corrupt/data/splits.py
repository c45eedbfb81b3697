"""Which documents are held out, and whether each split gets one."""

import hashlib
from collections.abc import Sequence

from keras_corrupt.data.corpus import CorpusError
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.sources import Source

# Held-out text to look at, and text to read for it, in characters: a tenth of a second.
_SAMPLE_SIZE = 20_000
_READ_SIZE = 5_000_000
_LINE_SIZE = 1000


def is_held_out(source: int, document: int, *, fraction: float, seed: int) -> bool:
    """Tells whether a document belongs to the validation split.

    Args:
        source: The source's number within the corpus.
        document: The document's number within the source.
        fraction: Share of the documents to hold out.
        seed: Seed of the choice.

    Returns:
        The same answer for the same arguments, on every machine.
    """
    return _draw(source, document, seed) < fraction * 2**64


def held_out_lines(
    sources: Sequence[Source], *, fraction: float, seed: int
) -> list[str]:
    """Checks that both splits get a document, before a vocabulary is trained.

    Args:
        sources: The corpus; read only as far as this needs.
        fraction: Share of the documents to hold out.
        seed: Seed of the choice.

    Returns:
        Some held-out lines.

    Raises:
        CorpusError: If the corpus is empty.
        DatasetError: If one of the splits would be empty.
    """
    sample, sample_size, read, draws = [], 0, 0, []
    splits = set()
    for number, source in enumerate(sources):
        last = None
        for document, line in source.lines():
            if document != last:
                draws.append(_draw(number, document, seed))
                last = document
            held_out = draws[-1] < fraction * 2**64
            splits.add(held_out)
            read += len(line)
            if held_out and sample_size < _SAMPLE_SIZE:
                sample.append(line[:_LINE_SIZE])
                sample_size += len(sample[-1])
            enough = sample_size >= _SAMPLE_SIZE or read >= _READ_SIZE
            if enough and len(splits) == 2:
                return sample
    if len(splits) < 2:
        raise _empty_split(sources, draws, fraction)
    return sample


def _draw(source: int, document: int, seed: int) -> int:
    key = f"{seed} {source} {document}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")


def _empty_split(
    sources: Sequence[Source], draws: list[int], fraction: float
) -> ValueError:
    lines = (
        "If each line of the .txt files is a document, pass --documents lines "
        "(documents='lines'); by default blank lines separate documents."
    )
    if not draws:
        names = ", ".join(source.name for source in sources[:3])
        more = ", ..." * (len(sources) > 3)
        return CorpusError(f"the corpus is empty: no line of text in {names}{more}.")
    if len(draws) == 1:
        return DatasetError(
            "the corpus is a single document, which cannot be split into training "
            f"and validation. {lines}"
        )
    least, most = min(draws) / 2**64, max(draws) / 2**64
    split, near = ("train", most) if most < fraction else ("validation", least)
    # In as few digits as do.
    rounded = (float(f"{near:.{digits}g}") for digits in range(1, 18))
    better = next((share for share in rounded if least < share <= most), most)
    return DatasetError(
        f"of {len(draws)} documents none would be in the {split} split at "
        f"validation_fraction={fraction}. Pass --validation_fraction {better}, or "
        f"a corpus of more documents. {lines}"
    )
