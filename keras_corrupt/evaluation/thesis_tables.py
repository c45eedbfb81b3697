"""Clark's thesis's sizes, parameters and FLOPs beside ours, as Markdown tables.

    python -m keras_corrupt.evaluation.thesis_tables

Three different counts are published for "the ELECTRA discriminator":

- Our encoder holds what the exported model needs: token, position and two segment
  embeddings, their layer norm, a projection where the embedding size is not the
  hidden size, and the layers. Small has 13,483,008 parameters.
- The public counts (13,548,800 for small, 109,482,240 for base, 335,141,888 for
  large) are KerasHub's `ElectraBackbone`, which ends in a pooler: a dense layer
  from hidden to hidden. The released checkpoints hold no weights for it, so they
  leave it at its initial values. The difference to ours is exactly
  `hidden_size * (hidden_size + 1)`.
- Our discriminator is the encoder and the replaced token detection head, whose
  first dense layer happens to have the pooler's shape. It is therefore
  `hidden_size + 1` larger than the public count: the second dense layer.
"""

import math
from typing import NamedTuple

from keras_corrupt.encoders.cost import training_flops
from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.models.networks import Discriminator
from keras_corrupt.models.weightless import weightless

ELECTRA = Electra.presets
SIZES = ("small", "base", "large")

#: Rows of table 5.1 that a preset holds: small, base, large.
TABLE_5_1 = {
    "Number of layers": (12, 12, 24),
    "Hidden size": (256, 768, 1024),
    "FFN inner hidden size": (1024, 3072, 4096),
    "Attention heads": (4, 12, 16),
    "Attention head size": (64, 64, 64),
    "Embedding size": (128, 768, 1024),
    # The thesis gives a multiplier for all three: 1/4, 1/3, 1/4.
    "Generator hidden size": (256 // 4, 768 // 3, 1024 // 4),
    "Generator FFN size": (1024 // 4, 3072 // 3, 4096 // 4),
    "Generator heads": (4 // 4, 12 // 3, 16 // 4),
    "Negative sample percent": (15, 15, 25),
}


#: Sequence length and batch size (5.4.1; table 5.1).
SCHEDULES = {"small": (128, 128), "base": (512, 256), "large": (512, 2048)}


class Run(NamedTuple):
    """A pretraining run of table 5.3 or 5.4, with what the thesis prints about it."""

    name: str
    system: str
    size: str
    steps: int
    params: str
    train: str
    infer: str
    overrides: dict | None = None


HALF_SIZE_GENERATOR = {
    "num_layers": 12,
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_heads": 2,
}

# Table 5.4 has no inference column; the parameters of its runs are in table 5.6.
RUNS = (
    Run("BERT-Small", "masked_lm", "small", 1_450_000, "14M", "1.4e18", "3.7e9"),
    Run("BERT-Base", "masked_lm", "base", 1_000_000, "110M", "6.4e19", "2.9e10"),
    Run("BERT (ours)", "masked_lm", "large", 464_000, "335M", "7.1e20", "-"),
    Run("ELECTRA-Small", "electra", "small", 1_000_000, "14M", "1.4e18", "3.7e9"),
    Run("ELECTRA-Base", "electra", "base", 766_000, "110M", "6.4e19", "2.9e10"),
    Run("ELECTRA-400K", "electra", "large", 400_000, "335M", "7.1e20", "-"),
    Run("ELECTRA-1.75M", "electra", "large", 1_750_000, "335M", "3.1e21", "-"),
)

#: What the two training costs that come out otherwise seem to have been counted with.
EXPLANATIONS = (
    Run(
        "ELECTRA-Small, generator 1/2",
        "electra",
        "small",
        1_000_000,
        "14M",
        "1.4e18",
        "3.7e9",
        {"generator": HALF_SIZE_GENERATOR},
    ),
    Run(
        "ELECTRA-400K, 15% masked",
        "electra",
        "large",
        400_000,
        "335M",
        "7.1e20",
        "-",
        {"mask_rate": 0.15},
    ),
)

#: KerasHub's published parameter counts of the released discriminators.
RELEASED_PARAMETERS = {"small": 13_548_800, "base": 109_482_240, "large": 335_141_888}

NOTES = """\
ELECTRA-Small: table 5.1's generator, a quarter of the discriminator's width, gives
1.3e18. One of half the width gives the 1.4e18 of table 5.3, and every fraction
in its rows of 50% to 6.25% trained, and matches the cost of BERT-Small, as intended.

ELECTRA-400K: predicting table 5.1's 25% of the positions gives 7.2e20; predicting
15% gives the 7.1e20 of table 5.4.

Parameters: BERT is the encoder and its head; ELECTRA is the discriminator's encoder
and its head, without the generator. Base has 109M; 110M is how BERT-Base is rounded."""


def run_costs(run):
    """Counts the pretrained network of a run, encoder and head, and the run's cost.

    Args:
        run: A `Run`.

    Returns:
        Two ints: parameters, without ELECTRA's generator; and FLOPs, forward and
        backward, of all steps.
    """
    system = Electra if run.system == "electra" else MaskedLM
    with weightless():
        model = system.from_preset(run.size, **(run.overrides or {}))
    length, batch_size = SCHEDULES[run.size]
    forward = model.forward_flops(length)
    *_, pretrained = model.networks.values()
    parameters = pretrained.count_params()
    return parameters, training_flops(forward, batch_size, run.steps)


def inference_flops(encoder, length):
    """Counts one sequence through an encoder and a binary head at every position.

    That head is in the thesis's column (table 5.3): base is 2.8e10 without it and
    2.9e10, as printed, with it. A sentence classifier costs what the encoder costs and
    next to nothing more.

    Args:
        encoder: Dict. Constructor arguments of `TransformerEncoder`.
        length: Int. Tokens in the sequence.

    Returns:
        Int. FLOPs of one sequence; dropout is off.

    Example:

    >>> f"{inference_flops(ELECTRA['base']['discriminator'], length=128):.1e}"
    '2.9e+10'
    """
    with weightless():
        return Discriminator(encoder).flops(length)


def parameters_by_part(*networks):
    """Counts the parts of networks; shared variables belong to the first that has them.

    Args:
        networks: Models, such as `model.discriminator, model.generator`.

    Returns:
        Dict from network and part, such as `"generator/head"`, to parameters.

    Example:

    >>> model = Electra.from_preset("tiny")
    >>> parameters_by_part(model.discriminator, model.generator)["generator/encoder"]
    30048
    """
    counted, parameters = set(), {}
    for network in networks:
        for part in network.layers:
            own = {id(v): math.prod(v.shape) for v in part.weights}
            new = own.keys() - counted
            parameters[f"{network.name}/{part.name}"] = sum(own[v] for v in new)
            counted |= new
    return parameters


def scientific(value):
    """Writes a number with the two digits, and in the form, of the thesis's tables.

    Args:
        value: Number.

    Returns:
        String.

    Example:

    >>> scientific(3_682_000_000)
    '3.7e9'
    """
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def markdown_table(header, rows):
    """Lays out a table that reads well as plain text and as Markdown.

    Args:
        header: List of strings.
        rows: List of lists of cells; a cell is a string or an integer.

    Returns:
        String, without a final line break.

    Example:

    >>> print(markdown_table(["Size", "Params"], [["small", 13483008]]))
    | Size  |     Params |
    |-------|-----------:|
    | small | 13,483,008 |
    """
    lines = [header] + [
        [f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def line(cells):
        padded = [cells[0].ljust(widths[0])]
        padded += [c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = "-" * (widths[0] + 2) + "|"
    rule += "|".join("-" * (width + 1) + ":" for width in widths[1:])
    return "\n".join([line(lines[0]), f"|{rule}|", *map(line, lines[1:])])


def preset_sizes(preset):
    """Reads the rows of table 5.1 from a preset of ELECTRA.

    Args:
        preset: Dict. Constructor arguments of `Electra`.

    Returns:
        Dict from the names of the rows to numbers.
    """
    discriminator, generator = preset["discriminator"], preset["generator"]
    return {
        "Number of layers": discriminator["num_layers"],
        "Hidden size": discriminator["hidden_size"],
        "FFN inner hidden size": discriminator["intermediate_size"],
        "Attention heads": discriminator["num_heads"],
        "Attention head size": (
            discriminator["hidden_size"] // discriminator["num_heads"]
        ),
        "Embedding size": discriminator["embedding_size"],
        "Generator hidden size": generator["hidden_size"],
        "Generator FFN size": generator["intermediate_size"],
        "Generator heads": generator["num_heads"],
        "Negative sample percent": round(100 * preset["mask_rate"]),
    }


def print_tables():
    """Prints sizes, costs and parameter counts, ours beside the thesis's."""
    ours = [preset_sizes(ELECTRA[size]) for size in SIZES]
    print("Table 5.1, sizes: ours (thesis)\n")
    rows = [
        [name]
        + [
            f"{sizes[name]} ({value})"
            for sizes, value in zip(ours, printed, strict=True)
        ]
        for name, printed in TABLE_5_1.items()
    ]
    print(markdown_table(["", *SIZES], rows))

    print("\nTables 5.3 and 5.4, parameters and FLOPs: ours, then the thesis's\n")
    rows = []
    # BERT's encoder is the discriminator's.
    infer = {
        size: scientific(inference_flops(ELECTRA[size]["discriminator"], length=128))
        for size in SIZES
    }
    for run in RUNS + EXPLANATIONS:
        parameters, train = run_costs(run)
        rows.append([run.name, parameters, run.params, scientific(train), run.train])
        rows[-1] += [infer[run.size], run.infer]
    header = ["Run", "params", "thesis", "train", "thesis", "infer", "thesis"]
    print(markdown_table(header, rows))
    print("\n" + NOTES)

    print("\nELECTRA's parameters, by part\n")
    header = ["Preset", "discriminator", "rtd_head", "generator", "masked_lm_head"]
    header += ["total", "released", "released - encoder"]
    rows = []
    for name in ELECTRA:
        with weightless():
            model = Electra.from_preset(name)
        counts = [*parameters_by_part(model.discriminator, model.generator).values()]
        released = RELEASED_PARAMETERS.get(name)
        difference = "-" if released is None else released - counts[0]
        rows.append([name, *counts, sum(counts), released or "-", difference])
    print(markdown_table(header, rows))
    print(
        "\nThe released counts include a pooler, hidden x hidden + hidden, that the "
        "released\nweights do not fill. The generator is counted without the token "
        "and position\nembeddings that it shares with the discriminator."
    )


if __name__ == "__main__":
    print_tables()
