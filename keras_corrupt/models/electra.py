"""ELECTRA: a generator corrupts text, a discriminator finds what was replaced."""

from pathlib import Path

import keras
from keras import ops

from keras_corrupt import presets as trained
from keras_corrupt.corruption import add_up, choose_positions
from keras_corrupt.models.generator_discriminator import GeneratorDiscriminator
from keras_corrupt.models.generator_sizes import complete_generator
from keras_corrupt.models.networks import MaskedLMNetwork, sizes_of
from keras_corrupt.models.sizes import DETECTORS
from keras_corrupt.models.tied_networks import (
    check_same,
    encoder_of_its_own,
    make_networks,
)
from keras_corrupt.objectives.loss import check_weight
from keras_corrupt.objectives.masked_tokens import MaskedTokens
from keras_corrupt.objectives.replaced_tokens import Detections, ReplacedTokens

#: Sizes: Clark's thesis, table 5.1 (`tiny` is ours, for CPUs and tests).
PRESETS = DETECTORS

#: Presets with weights, made by the recipes of their names: name -> directory.
TRAINED_PRESETS = {
    name: Path(trained.__file__).parent / "electra" / name
    for name in ("tiny_en", "small_en")
}

#: Where the discriminator learns: at all tokens, or at a part (5.4.3, ELECTRA 15%).
RTD_POSITIONS = ("all", "random", "masked")


@keras.saving.register_keras_serializable(package="keras_corrupt")
class Electra(GeneratorDiscriminator):
    """Pretrains a discriminator on text that a small generator corrupts.

    Clark's thesis, chapter 5. In each step some positions are masked, the generator
    (a masked language model) fills each with a sample from its output distribution,
    and the discriminator tells for every token whether it was replaced. Both train
    together; no gradient passes the sampling. The discriminator's encoder is the
    result.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: The discriminator's `TransformerEncoder`, or its constructor
            arguments.
        generator: The generator's, where they differ: its layers' number and sizes.
        mask_rate: Fraction of tokens to mask.
        keep_rate: Fraction of the chosen positions that keep their token in the
            generator's input: 0 in the thesis, 0.15 in the released code.
        temperature: By what the logits are divided before tokens are drawn from their
            softmax: above 1, the generator is a weaker one (thesis, 5.5).
        exclude_original: Whether the original token is never drawn (5.5).
        tied_embeddings: What the networks share: `"token_and_position"` embeddings
            (thesis, 5.3.1), `"token"` embeddings alone, or `"none"`; `"all"` embeddings
            (released code: of segments and their layer norm too); `"everything"`,
            all weights of encoders of one size. With `"gradient_disentangled"`
            the discriminator's token and position tables are the generator's, which
            its loss does not reach, plus differences (He et al., 2021, DeBERTaV3, 3.3).
        rtd_weight: Weight of replaced token detection beside masked language
            modelling. 50 is the released code's; the thesis does not give it.
        rtd_positions: Where the discriminator learns: at `"all"` tokens; at a
            `"random"` part of them, `mask_rate` (thesis, 5.4.3, ELECTRA 15%); or
            at the `"masked"` ones alone (ELECTRA 15% in Clark et al., 2020). Its
            metrics are of all tokens.
        generator_width: Hidden size, feed-forward size and heads of the generator as a
            fraction of the discriminator's (figure 5.4), in place of those that
            `generator` has.
        kwargs: Arguments of `Pretrainer`.

    Raises:
        ValueError: An option is none of those named, or all weights are to be tied and
            the networks' sizes differ.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.Electra.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> outputs = model({"token_ids": ids, "segment_ids": 0 * ids,
    ...                  "padding_mask": 1 + 0 * ids})
    >>> tuple(outputs["rtd"].logits.shape)
    (1, 32)
    """

    presets = PRESETS
    trained_presets = TRAINED_PRESETS
    #: Class of the generator, made of an encoder's arguments.
    generator_class = MaskedLMNetwork

    def __init__(
        self,
        discriminator,
        generator,
        mask_rate=0.15,
        keep_rate=0.0,
        temperature=1.0,
        exclude_original=False,
        tied_embeddings="token_and_position",
        rtd_weight=50.0,
        rtd_positions="all",
        generator_width=None,
        **kwargs,
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        check_weight("rtd_weight", rtd_weight)
        if rtd_positions not in RTD_POSITIONS:
            raise ValueError(
                f"`rtd_positions` must be one of {RTD_POSITIONS}; got "
                f"{rtd_positions!r}."
            )
        discriminator = self.with_padding(discriminator)
        sizes = {"discriminator": sizes_of(discriminator), "generator": generator}
        self.discriminator, self.generator = make_networks(
            discriminator,
            complete_generator({**sizes, "generator_width": generator_width}),
            tied_embeddings,
            self.dtype_policy,
            self.generator_class,
        )
        self.corrupter = self.masked_lm_corrupter(
            keep_rate, temperature, exclude_original
        )

        # === Config ===
        self.generator_width = generator_width
        self.tied_embeddings = tied_embeddings
        self.rtd_positions = rtd_positions
        self.learn_by(
            mlm=MaskedTokens(network="generator"), rtd=ReplacedTokens(weight=rtd_weight)
        )

    @property
    def encoder(self):
        return encoder_of_its_own(self.discriminator.encoder)

    def token_states(self, inputs):
        return self.discriminator.encoder(inputs, training=False)

    @property
    def padding_id(self):
        """The tokenizer's padding id, or the encoder's where there is no tokenizer."""
        return (self.tokenizer or self.discriminator.encoder).padding_id

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        corrupted, predictions = self.corrupter.corrupt(inputs, training)
        return {
            "corrupted": corrupted,
            "mlm": predictions,
            **self.discriminate(inputs, corrupted, training),
        }

    def discriminate(self, inputs, corrupted, training=False):
        """Runs the discriminator.

        Args:
            inputs: The model's inputs.
            corrupted: The `Corrupted`.
            training: Whether dropout is active.

        Returns:
            A dict: what `ReplacedTokens` reads.
        """
        logits = self.discriminator(
            {**inputs, "token_ids": corrupted.token_ids}, training=training
        )
        detections = Detections(logits, corrupted.replaced, inputs["padding_mask"])
        if self.rtd_positions == "all":
            return {"rtd": detections}
        return {"rtd": detections, "rtd_learned": self.learned(inputs, corrupted)}

    def start_from_generator(self):
        """Gives the discriminator the weights of the generator (thesis, 5.3.3).

        The second phase of two-stage training begins with it.

        Raises:
            ValueError: The networks differ, or have weights in common, so that the
                generator would not stay as it is.
        """
        if self.tied_embeddings != "none":
            raise ValueError(
                "The discriminator can start from the generator and leave it as it is "
                'with `tied_embeddings="none"` only; got '
                f"{self.tied_embeddings!r}."
            )
        ours, theirs = self.discriminator.encoder, self.generator.encoder
        check_same(
            theirs.architecture,
            ours.architecture,
            "A discriminator that starts from the generator is of its size",
        )
        ours.set_weights(theirs.get_weights())

    def learned(self, inputs, corrupted):
        """Returns where the discriminator learns: `[batch, length]`, 0 or 1.

        Args:
            inputs: The model's inputs.
            corrupted: The `Corrupted`.
        """
        positions, weights = corrupted.masking
        if self.rtd_positions == "random":
            positions, weights = choose_positions(
                inputs, self.masker.mask_rate, (), self.seed_generator
            )
        return add_up(weights, positions, ops.shape(inputs["token_ids"])[1])

    def get_config(self):
        return {
            **super().get_config(),
            **self.corrupter.options,
            "generator": self.generator.encoder.architecture,
            "generator_width": self.generator_width,
            "tied_embeddings": self.tied_embeddings,
            "rtd_positions": self.rtd_positions,
            "rtd_weight": self.objectives["rtd"].weight,
        }
