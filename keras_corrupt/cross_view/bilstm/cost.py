"""What a `BiLSTMEncoder` costs, by arithmetic on its sizes; `cost.py` has the rules.

But looking up an embedding costs nothing here, as in practice: a one-hot vector times
the table of all words would be most of the cost.
"""

from keras_corrupt.encoders.cost import dense_flops

#: For each number of a cell: 3 sigmoids of 4, 2 tanhs of 1, 3 products, a sum.
CELL_FLOPS = 3 * 4 + 2 + 3 + 1


def _widths(sizes):
    """Yields the width of the input and of the cell of each layer."""
    width = sizes["num_filters"] * len(sizes["filter_widths"])
    for hidden in sizes["hidden_sizes"]:
        yield width, hidden
        width = 2 * sizes["projection_size"]


def bilstm_flops(sizes, length, characters):
    """Counts one sentence and one forward pass without dropout.

    Args:
        sizes: Dict. Constructor arguments of `BiLSTMEncoder`, all of them.
        length: Int. Words in the sentence.
        characters: Int. Characters in each word, padding included.
    """
    filters = sizes["num_filters"]
    word = filters * len(sizes["filter_widths"])  # the sum of embedding and spelling
    for width in sizes["filter_widths"]:
        window = dense_flops(width * sizes["character_size"], filters)
        word += characters * (window + 2 * filters)  # ReLU and maximum
    for width, hidden in _widths(sizes):
        gates = dense_flops(width, 4 * hidden)
        gates += 2 * sizes["projection_size"] * 4 * hidden + 4 * hidden
        projection = 2 * hidden * sizes["projection_size"]
        word += 2 * (gates + CELL_FLOPS * hidden + projection)
    return length * word


def bilstm_parameters(sizes):
    """Counts the weights of a `BiLSTMEncoder` of all these sizes.

    >>> bilstm_parameters({"vocabulary_size": 9, "num_characters": 9,
    ...     "character_size": 5, "filter_widths": [2], "num_filters": 2,
    ...     "hidden_sizes": [4], "projection_size": 3})
    301
    """
    filters, characters = sizes["num_filters"], sizes["character_size"]
    total = sizes["vocabulary_size"] * filters * len(sizes["filter_widths"])
    total += sizes["num_characters"] * characters
    for width in sizes["filter_widths"]:
        total += width * characters * filters + filters
    size = sizes["projection_size"]
    for width, hidden in _widths(sizes):
        total += 2 * ((width + size + 1) * 4 * hidden + hidden * size)
    return total
