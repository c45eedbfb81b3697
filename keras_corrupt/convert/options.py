"""What a source or a target does not say of itself."""

from pathlib import Path
from typing import NamedTuple


class Options(NamedTuple):
    """Options of a conversion.

    Attributes:
        generator: The directory of ELECTRA's generator, if it is not with the
            discriminator.
        approximate_gelu: Whether an encoder has gelu's tanh approximation: of a source
            that does not say, and in a target that has nothing else, instead of gelu.
        untrained_networks: Names of networks that are not trained and not written.
        sentence_transformers: Whether a directory of Hugging Face's gets the files of
            sentence-transformers, too. A `SentenceEncoder`'s always does.
    """

    generator: Path | None = None
    approximate_gelu: bool | None = None
    untrained_networks: tuple = ()
    sentence_transformers: bool = False
