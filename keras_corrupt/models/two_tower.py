"""The two-tower cloze model as a system of its own."""

import keras
from keras import ops

from keras_corrupt.models.networks import TwoTowerNetwork
from keras_corrupt.models.pretrainer import NoEncoderError, Pretrainer
from keras_corrupt.models.sizes import ENCODERS
from keras_corrupt.objectives.cloze import ClozeLosses, ExpectedTokens

#: Sizes: Clark's thesis, 5.4.5, "of the same size as Electric", and one Transformer
#: pass in table 5.9. So the towers have the width of Electric's discriminator and half
#: of its layers each; together they cost what it costs.
PRESETS = {
    name: {
        "encoder": {**ENCODERS[name], "num_layers": ENCODERS[name]["num_layers"] // 2}
    }
    for name in ("tiny", "small", "base")
}


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
        kwargs: Arguments of `Pretrainer`, but for `mask_rate` and `masking`.

    Raises:
        ValueError: An option of masking is given.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.TwoTower.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["cloze"].losses.shape)
    (1, 32)
    """

    presets = PRESETS

    def __init__(self, encoder, **kwargs):
        super().__init__(
            vocabulary_size=encoder["vocabulary_size"],
            max_length=encoder.get("max_length", 512),
            **kwargs,
        )
        mask_rate, masking = (self.masker.options[n] for n in ("mask_rate", "masking"))
        if (mask_rate, masking) != (0.15, "token"):
            raise ValueError(
                "TwoTower masks nothing and learns from every token: leave out "
                f"`mask_rate={mask_rate}` and `masking={masking!r}`."
            )
        self.network = TwoTowerNetwork(
            self.with_padding(encoder), dtype=self.dtype_policy, name="network"
        )
        self.learn_by(cloze=ExpectedTokens(self.network.head))

    @property
    def networks(self):
        return {"two_tower": self.network}

    @property
    def encoder(self):
        raise NoEncoderError(
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
        losses = self.network.head.loss(states, inputs["token_ids"])
        learned = ops.cast(self.masker.maskable(inputs), "float32")
        return {"states": states, "cloze": ClozeLosses(losses, learned)}

    def token_states(self, inputs):
        # Not what the head reads: that is zero beyond both ends of a text.
        towers = self.network.left_to_right, self.network.right_to_left
        return ops.concatenate([tower(inputs) for tower in towers], axis=-1)

    def token_log_probabilities(self, inputs):
        """Returns log q(x_t | all other tokens), normalised, in one pass."""
        return -self(inputs)["cloze"].losses

    # === What a step costs ===

    def forward_flops(self, length):
        return self.network.flops(length, training=True)

    def activation_bytes(self, batch_size, length):
        return self.network.activation_bytes(batch_size, length, 0, self.number_bytes)

    def get_config(self):
        return {**super().get_config(), "encoder": self.network.architecture}
