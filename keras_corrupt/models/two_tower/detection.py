"""What Electric and ELECTRA-TT share: a two-tower generator before a discriminator."""

import keras
from keras import ops

from keras_corrupt.corruption import (
    gather_tokens,
    maskable_tokens,
    replace_tokens,
    sample_tokens,
)
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.masked_lm.objective import correct_predictions
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    GeneratorDiscriminator,
)
from keras_corrupt.models.replaced_token_detection.sizes import check_shared_sizes
from keras_corrupt.models.two_tower import two_tower
from keras_corrupt.models.two_tower.network import TwoTowerNetwork


class TwoTowerDetection(GeneratorDiscriminator):
    """Puts a two-tower model's samples into a text, for a discriminator to find.

    Clark's thesis, 5.1.5. The generator has q at every position and learns from every
    token; the samples stand at some positions only. A subclass says what its
    discriminator is, and what it learns. Inputs are as for `MaskedLM`.

    Args:
        discriminator: Constructor arguments of the discriminator's
            `TransformerEncoder`.
        generator: Those of each tower, where they differ: its layers' number and sizes.
        kwargs: Those of `Pretrainer`. `mask_rate` is the fraction of tokens in whose
            place samples stand; no token is masked.
    """

    network_arguments = {
        "discriminator": TransformerEncoder,
        "generator": TransformerEncoder,
    }
    metric_names = {
        **two_tower.METRIC_NAMES,
        "cloze_accuracy": "cloze accuracy",
        **GeneratorDiscriminator.metric_names,
    }
    #: Class of the discriminator, made of an encoder's arguments.
    discriminator_class = None

    def __init__(self, discriminator, generator, **kwargs):
        super().__init__(discriminator, **kwargs)
        check_shared_sizes(discriminator, generator)
        self.discriminator = self.discriminator_class(
            self.with_padding(discriminator),
            dtype=self.dtype_policy,
            name="discriminator",
        )
        shared = self.discriminator.encoder
        sizes = {
            **shared.architecture,
            **generator,
            "embedding_size": shared.embedding_size,
        }
        # Token and position embeddings are shared as in ELECTRA (5.3.1).
        tied = {"tied_to": shared, "tied_parts": ("token", "position")}
        self.generator = TwoTowerNetwork(
            {**sizes, **tied}, dtype=self.dtype_policy, name="generator"
        )
        self.accuracy = keras.metrics.Mean(name="cloze_accuracy")

    def corrupt(self, inputs, training=False):
        """Puts the generator's samples into some tokens' places.

        Args:
            inputs: The model's inputs.
            training: Whether dropout is active.

        Returns:
            A dict of what the generator's loss and the discriminator need; its
            `corrupted_ids`, int32 `[batch, length]`, are what the latter reads, and
            `sampled_logits`, float32 `[batch, masked, vocabulary]`, what the samples
            were drawn from.
        """
        token_ids = inputs["token_ids"]
        masking = self.choose_positions(inputs)
        states = self.generator(inputs, training=training)
        logits = self.generator.head(ops.stop_gradient(states), masking.positions)
        sampled_ids = sample_tokens(logits, self.seed_generator)
        maskable = maskable_tokens(inputs, self.unmaskable_ids)
        return {
            "masked_positions": masking.positions,
            "masked_weights": masking.weights,
            "target_ids": gather_tokens(token_ids, masking.positions),
            "cloze_losses": self.generator.head.loss(states, token_ids),
            "cloze_weights": ops.cast(maskable, "float32"),
            "sampled_logits": ops.stop_gradient(logits),
            "sampled_ids": sampled_ids,
            "corrupted_ids": replace_tokens(token_ids, masking, sampled_ids),
        }

    def loss_terms(self, outputs):
        return {"cloze": (outputs["cloze_losses"], outputs["cloze_weights"])}

    def update_metrics(self, outputs):
        # Where samples stand; those positions are a fair sample of all.
        correct = correct_predictions(outputs["sampled_logits"], outputs["target_ids"])
        self.accuracy.update_state(correct, outputs["masked_weights"])
        super().update_metrics(outputs)

    # === What a run shows ===

    def baselines(self, metrics, unigram):
        return {
            **two_tower.baselines(unigram),
            "cloze_accuracy": (unigram.accuracy, "unigram"),
            **super().baselines(metrics, unigram),
        }

    def generator_warnings(self, metrics, unigram):
        yield from two_tower.warnings(metrics, unigram)
        yield from super().generator_warnings(metrics, unigram)

    def get_config(self):
        return {**super().get_config(), "generator": self.generator.architecture}
