"""The two-tower cloze model as a system of its own."""

import keras
from keras import ops

from keras_corrupt.corruption import maskable_tokens
from keras_corrupt.models.pretrainer import Pretrainer
from keras_corrupt.models.two_tower.examples import describe_expectations
from keras_corrupt.models.two_tower.network import TwoTowerNetwork
from keras_corrupt.models.two_tower.presets import PRESETS

#: Of the metric that every model with a two-tower network has.
METRIC_NAMES = {"cloze_loss": "cloze loss of all tokens (nats)"}


@keras.saving.register_keras_serializable(package="keras_corrupt")
class TwoTower(Pretrainer):
    """Pretrains two Transformers that predict each token from all others.

    Clark's thesis, 5.1.5 and 5.4.5: one reads from left to right, one from right to
    left, and what they know before they reach a token predicts it. Nothing is masked,
    and every token is learned from, special tokens and padding aside. Here it is a
    model of its own, with which the thesis compares Electric.

    It gives exact probabilities of tokens in one pass, and has no `encoder`: no state
    of either tower has seen a whole text, so that it cannot be fine-tuned.

    Inputs are as for `MaskedLM`.

    Args:
        encoder: Constructor arguments of each tower's `TransformerEncoder`. The towers
            share all embeddings.
        kwargs: Those of `Pretrainer`, but for `mask_rate` and `masking`.

    Raises:
        ValueError: An option of masking is given.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.TwoTower.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["cloze_losses"].shape)
    (1, 32)
    """

    presets = PRESETS
    loss_weights = {"cloze": 1.0}
    metric_names = METRIC_NAMES
    examples_legend = "[original: expected]: another token was likelier"

    def __init__(self, encoder, **kwargs):
        super().__init__(
            vocabulary_size=encoder["vocabulary_size"],
            max_length=encoder.get("max_length", 512),
            **kwargs,
        )
        if (self.mask_rate, self.masking) != (0.15, "token"):
            raise ValueError(
                "TwoTower masks nothing and learns from every token: leave out "
                f"`mask_rate={self.mask_rate}` and `masking={self.masking!r}`."
            )
        self.network = TwoTowerNetwork(
            self.with_padding(encoder), dtype=self.dtype_policy, name="network"
        )
        self.built = True

    @property
    def networks(self):
        return {"two_tower": self.network}

    @property
    def encoder(self):
        raise ValueError(
            "TwoTower has two towers, neither of which sees a whole text, and no "
            "`encoder` to fine-tune. Fine-tune another model, such as Electric, which "
            "learns from a two-tower model's samples."
        )

    @property
    def padding_id(self):
        """The tokenizer's padding id, or the towers' where there is no tokenizer."""
        return (self.tokenizer or self.network.left_to_right).padding_id

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs)
        states = self.network(inputs, training=training)
        return {
            "states": states,
            "cloze_losses": self.network.head.loss(states, inputs["token_ids"]),
            "cloze_weights": ops.cast(
                maskable_tokens(inputs, self.unmaskable_ids), "float32"
            ),
        }

    def loss_terms(self, outputs):
        return {"cloze": (outputs["cloze_losses"], outputs["cloze_weights"])}

    def token_states(self, inputs):
        # Not what the head reads: that is zero beyond both ends of a text.
        towers = self.network.left_to_right, self.network.right_to_left
        return ops.concatenate([tower(inputs) for tower in towers], axis=-1)

    def token_log_probabilities(self, inputs):
        """Returns log q(x_t | all other tokens), normalised, in one pass."""
        return -self(inputs)["cloze_losses"]

    # === What a run shows ===

    def describe_examples(self, inputs):
        return describe_expectations(self, inputs)

    def baselines(self, metrics, unigram):
        return baselines(unigram)

    def warnings(self, metrics, unigram):
        return warnings(metrics, unigram)

    # === What a step costs ===

    def forward_flops(self, length):
        return self.network.flops(length, training=True)

    def activation_bytes(self, batch_size, length):
        return self.network.activation_bytes(batch_size, length, 0, self.number_bytes)

    def get_config(self):
        return {**super().get_config(), "encoder": self.network.architecture}


def baselines(unigram):
    """Returns what guessing by frequency reaches, as `Pretrainer.baselines` does."""
    return {"cloze_loss": (unigram.loss, "unigram")}


def warnings(metrics, unigram):
    """Yields what looks wrong with a two-tower model; see `Pretrainer`."""
    if metrics["cloze_loss"] > unigram.loss:
        yield (
            f"the two-tower model (loss {metrics['cloze_loss']:.2f}) is no better than "
            f"token frequencies ({unigram.loss:.2f}). Try a lower --learning_rate or a "
            "longer warm-up."
        )
