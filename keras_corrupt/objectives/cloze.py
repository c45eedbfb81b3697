r"""The cloze task, solved by two towers (Clark's thesis, 5.1.5; Baevski et al., 2019).

    q(x_t | x_\t) = softmax(W [h->_{t-1}, h<-_{t+1}])_{x_t}
    L_cloze       = mean over tokens t of -log q(x_t | x_\t)

h-> are states of a left-to-right Transformer, h<- of a right-to-left Transformer, and
x_\t is the text x without its token t. Neither of the two states has seen x_t, so that
one pass gives q at every position. The thesis does not say what stands before the first
and after the last token; here it is zeros. No token that is learned from reads them:
[CLS] and [SEP] stand at the edges.
"""

from typing import NamedTuple

import keras
from keras import ops

from keras_corrupt.objectives.masked_tokens import correct_predictions, few_replaced
from keras_corrupt.objectives.objective import Objective


class ClozeLosses(NamedTuple):
    """What a two-tower model says of each token.

    Attributes:
        losses: float32 `[batch, length]`, -log q of the token.
        weights: float32 `[batch, length]`, 1 for a token that is learned from, 0 for
            special tokens and padding.
    """

    losses: object
    weights: object


class Cloze(Objective):
    """Predicts all tokens, each from the others: reads `outputs["cloze"]`."""

    metric_names = {"cloze_loss": "cloze loss of all tokens (nats)"}

    def loss(self, outputs):
        return outputs["cloze"]

    def baselines(self, metrics, unigram):
        return {"cloze_loss": (unigram.loss, "unigram")}

    def warnings(self, metrics, unigram):
        if metrics["cloze_loss"] > unigram.loss:
            yield (
                f"the two-tower model (loss {metrics['cloze_loss']:.2f}) is no better "
                f"than token frequencies ({unigram.loss:.2f}). Try a lower "
                "--learning_rate or a longer warm-up."
            )
        yield from few_replaced(metrics)


class ExpectedTokens(Cloze):
    """`Cloze` of a model of its own: its examples show what it expected.

    It reads the states `outputs["states"]`, `[batch, length, 2 * hidden]`, too.

    Args:
        head: The `VocabularyHead` that reads these states.
        kwargs: Arguments of `Objective`.
    """

    examples_legend = "[original: expected]: another token was likelier"

    def __init__(self, head, **kwargs):
        super().__init__(**kwargs)
        self.head = head

    def describe(self, outputs, row, ids, token):
        states = outputs["states"][row : row + 1]
        likeliest = keras.ops.convert_to_numpy(self.head.top_k(states, 1))[0, :, 0]
        learned = outputs["cloze"].weights[row]
        for position, original in enumerate(ids):
            expected = likeliest[position]
            if learned[position] and expected != original:
                yield position, f"[{token(original)}: {token(expected)}]"


class ClozeGenerator(Cloze):
    """`Cloze` of a generator: reads its `Predictions` `outputs["predictions"]`, too."""

    metric_names = {**Cloze.metric_names, "cloze_accuracy": "cloze accuracy"}

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.accuracy = keras.metrics.Mean(name="cloze_accuracy")

    def update_metrics(self, outputs):
        # Where samples stand; those positions are a fair sample of all.
        predictions = outputs["predictions"]
        correct = correct_predictions(predictions.logits, predictions.target_ids)
        self.accuracy.update_state(correct, predictions.masking.weights)

    def baselines(self, metrics, unigram):
        accuracy = {"cloze_accuracy": (unigram.accuracy, "unigram")}
        return {**super().baselines(metrics, unigram), **accuracy}


def states_around(left_to_right, right_to_left, padding_mask):
    """Puts the state before each position beside the one after it.

    Args:
        left_to_right: `[batch, length, hidden]`, states that have seen the tokens up to
            their own.
        right_to_left: The same, of states that have seen those from their own on.
        padding_mask: `[batch, length]`, 1 for tokens, 0 for padding.

    Returns:
        `[batch, length, 2 * hidden]`; zeros in place of a state where there is no
        token.

    >>> import numpy as np
    >>> right, left = np.array([[[1], [2], [3]]]), np.array([[[7], [8], [9]]])
    >>> np.array(states_around(right, left, np.array([[1, 1, 0]]))).tolist()
    [[[0, 8], [1, 0], [2, 0]]]
    """
    before, after = (
        states * ops.cast(padding_mask, states.dtype)[..., None]
        for states in (left_to_right, right_to_left)
    )
    before = ops.pad(before, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    after = ops.pad(after, ((0, 0), (0, 1), (0, 0)))[:, 1:]
    return ops.concatenate([before, after], axis=-1)
