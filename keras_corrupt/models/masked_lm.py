"""BERT's masked language model: the papers' baseline, and ELECTRA's generator."""

import keras
from keras import ops

from keras_corrupt.corruption import gather_tokens
from keras_corrupt.corruption.corrupted import Predictions
from keras_corrupt.corruption.corrupters import TokenMasker
from keras_corrupt.models.networks import MaskedLMNetwork, sizes_of
from keras_corrupt.models.pretrainer import Pretrainer
from keras_corrupt.models.sizes import ENCODERS
from keras_corrupt.objectives.masked_tokens import MaskedTokens, masked_lm_loss

#: Sizes: Clark's thesis, 5.2.3 and table 5.1: BERT-Small, BERT-Base and BERT-Large are
#: as large as the ELECTRA discriminators of these names (`tiny` is ours).
PRESETS = {
    name: {"encoder": encoder, "mask_rate": 0.15} for name, encoder in ENCODERS.items()
}


@keras.saving.register_keras_serializable(package="keras_corrupt")
class MaskedLM(Pretrainer):
    """Pretrains an encoder to predict masked tokens.

    Inputs are dicts of int32 `[batch, length]` arrays `token_ids`, `segment_ids` and
    `padding_mask`, or what else `text_inputs` makes into that: `token_ids` alone, an
    array of ids, lengths that vary from batch to batch. Positions are drawn anew each
    step, unless the inputs have `masked_positions` and `masked_weights` of their own
    (static masking).

    Args:
        encoder: A `TransformerEncoder`, or its constructor arguments.
        mask_rate: Fraction of tokens to predict.
        keep_rate: Fraction of those that keep their token in the input.
        random_rate: Fraction of those that get a random token. BERT's 80-10-10 is the
            default.
        kwargs: Arguments of `Pretrainer`.

    Example:

    >>> import keras_corrupt
    >>> model = keras_corrupt.models.MaskedLM.from_preset("tiny")
    >>> model.encoder.hidden_size
    128
    """

    presets = PRESETS
    several_masks = True
    masks_each_token = True

    def __init__(
        self, encoder, mask_rate=0.15, keep_rate=0.1, random_rate=0.1, **kwargs
    ):
        sizes = sizes_of(encoder)
        super().__init__(
            vocabulary_size=sizes["vocabulary_size"],
            max_length=sizes.get("max_length", 512),
            mask_rate=mask_rate,
            **kwargs,
        )
        self.network = MaskedLMNetwork(
            self.with_padding(encoder), dtype=self.dtype_policy, name="network"
        )
        self.mask = TokenMasker(
            self.masker, self.mask_id, self.vocabulary_size, keep_rate, random_rate
        )
        self.learn_by(mlm=MaskedTokens())

    @property
    def networks(self):
        return {"masked_lm": self.network}

    @property
    def encoder(self):
        return self.network.encoder

    @property
    def vocabulary_head(self):
        return self.network.head

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        masked, masking = self.mask(inputs)
        logits = self.network(masked, masking.positions, training=training)
        targets = gather_tokens(inputs["token_ids"], masking.positions)
        return {"mlm": Predictions(masked["token_ids"], masking, targets, logits)}

    def token_log_probabilities(self, inputs):
        """Returns log p(x_t | all other tokens), normalised, of a pass for each token.

        It masks one token of every text at a time (Salazar et al., 2020). Where the
        inputs have `word_ids`, int32 `[batch, length]`, it masks with it the tokens
        that follow and have the same one (Kauf and Ivanova, 2023).
        """
        token_ids, word_ids = inputs["token_ids"], inputs.get("word_ids")
        batch, length = ops.shape(token_ids)

        def log_probability(_, position):
            places = ops.arange(length, dtype="int32")[None, :]
            positions = ops.broadcast_to(position, (batch, 1))
            masked = places == position
            if word_ids is not None:
                same_word = word_ids == gather_tokens(word_ids, positions)
                masked = ops.logical_and(places >= position, same_word)
            masked_ids = ops.where(masked, self.mask_id, token_ids)
            logits = self.network({**inputs, "token_ids": masked_ids}, positions)
            targets = gather_tokens(token_ids, positions)
            log = -masked_lm_loss(logits, targets)[:, 0]
            return log, log

        positions = ops.arange(length, dtype="int32")
        start = ops.zeros((batch,), "float32")
        return ops.transpose(ops.scan(log_probability, start, positions)[1])

    # === What a step costs ===

    def forward_flops(self, length):
        masked = self.masker.num_masked(length)
        return self.network.flops(length, masked, training=True)

    def activation_bytes(self, batch_size, length):
        masked = self.masker.num_masked(length)
        sizes = batch_size, length, masked, self.number_bytes
        return self.network.activation_bytes(*sizes)

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": self.network.encoder.architecture,
            "keep_rate": self.mask.keep_rate,
            "random_rate": self.mask.random_rate,
        }
