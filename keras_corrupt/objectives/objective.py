"""One term of a loss, and all that is said of it."""


class Objective:
    """What a pretraining model learns from: a term of its loss.

    A model has a dict of them, name of the term -> objective. An objective reads what
    the model's `call` returned, `outputs`: a dict of `Corrupted`, `Predictions` and the
    like, whose docstrings give the shapes. Its attributes that are Keras metrics are
    the model's.

    Args:
        weight: Weight of the term in the loss.
        network: Name of the network that learns from it alone, such as `"generator"`;
            `None` for the network that is kept, or for all.
    """

    #: Validation metric -> its name for people, in the order of the closing table.
    metric_names = {}
    #: Metrics that show whether the model is alive.
    vital_metrics = ()
    #: How to read what `describe` yields; `None` where it yields nothing.
    examples_legend = None

    def __init__(self, weight=1.0, network=None):
        self.weight, self.network = weight, network

    def loss(self, outputs):
        """Returns the value at each position, and the weight of each position."""
        raise NotImplementedError

    def update_metrics(self, outputs):
        """Updates the objective's own metrics."""

    def baselines(self, metrics, unigram):
        """Returns what guessing reaches: metric -> (value, what guesses).

        Args:
            metrics: The model's validation metrics.
            unigram: `Unigram`, the scores of guessing tokens by frequency.
        """
        return {}

    def warnings(self, metrics, unigram):
        """Yields what looks wrong in the second half of a run, each with a remedy.

        Args:
            metrics: See `baselines`.
            unigram: See `baselines`.
        """
        return ()

    def describe(self, outputs, row, ids, token):
        """Yields positions of an example with what stands there instead of the token.

        Args:
            outputs: What the model's `call` returned, NumPy arrays.
            row: The example's number.
            ids: int `[length]`, its token ids without padding.
            token: Function that makes a token id readable.
        """
        return ()
