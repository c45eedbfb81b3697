"""The base of every pretraining model: networks + corruption -> named losses."""

import keras
from keras import ops

from keras_corrupt.devices.replicas import (
    SeedGenerator,
    share_of_loss,
    sum_over_replicas,
)
from keras_corrupt.kernels import FusedTraining
from keras_corrupt.models import preset_directory


def weighted_mean(values, weights):
    """Mean of `values` weighted by `weights`; 0 where no weight is positive.

    A replica's is its part of the mean over the whole batch: replicas differ in the
    weight that they hold, so that a mean of their means would be another one.
    """
    values = ops.cast(values, "float32")
    weights = ops.cast(weights, "float32")
    total = sum_over_replicas(ops.sum(weights))
    return ops.sum(values * weights) / ops.maximum(total, 1.0)


class Pretrainer(FusedTraining, keras.Model):
    """Turns outputs into weighted loss terms, metrics and presets.

    A subclass builds its networks in the constructor, corrupts text in `call` and
    says in `loss_terms` what it learns from. Everything else is here.

    Args:
        vocabulary_size: Number of token ids of all networks.
        max_length: The longest sequence all networks can read.
        mask_rate: Fraction of tokens to corrupt, between 0 and 1, both excluded.
        mask_id: Id of `[MASK]`.
        unmaskable_ids: Ids never corrupted: `[PAD]`, `[CLS]`, `[SEP]`. The default
            ids are those of BERT's English vocabulary.
        seed: Seed of masking and sampling.
        tokenizer: A `Tokenizer`; its ids then take the place of the three
            arguments above. Needed for raw strings, not for training on ids.
    """

    #: Preset name -> constructor arguments.
    presets = {}
    #: Name of a loss term -> its weight in the total.
    loss_weights = {}
    #: Constructor argument that describes the encoder which is fine-tuned later.
    main_network = "encoder"
    #: Metric -> what guessing at random reaches, where no other metric tells.
    chance = {}

    def __init__(
        self,
        vocabulary_size,
        max_length,
        mask_rate,
        mask_id=103,
        unmaskable_ids=(0, 101, 102),
        seed=0,
        tokenizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not 0.0 < mask_rate < 1.0:
            raise ValueError(
                f"`mask_rate` must lie between 0 and 1, both excluded (the papers use "
                f"0.15 and 0.25); got {mask_rate}."
            )
        if tokenizer is not None:
            if tokenizer.vocabulary_size > vocabulary_size:
                raise ValueError(
                    f"`tokenizer` has {tokenizer.vocabulary_size} tokens, more than "
                    f"the model's vocabulary_size={vocabulary_size}. Make the model "
                    "with a `vocabulary_size` at least as large."
                )
            mask_id = tokenizer.mask_id
            unmaskable_ids = (
                tokenizer.padding_id,
                tokenizer.classify_id,
                tokenizer.separate_id,
            )
        if not all(0 <= i < vocabulary_size for i in (mask_id, *unmaskable_ids)):
            raise ValueError(
                f"`mask_id` {mask_id} and `unmaskable_ids` {tuple(unmaskable_ids)} "
                f"must be ids below vocabulary_size={vocabulary_size}. Pass those of "
                "your vocabulary, or its `tokenizer`."
            )
        self.vocabulary_size = vocabulary_size
        self.max_length = max_length
        self.mask_rate = mask_rate
        self.mask_id = mask_id
        self.unmaskable_ids = tuple(unmaskable_ids)
        self.seed = seed
        self.tokenizer = tokenizer
        self.seed_generator = SeedGenerator(seed)
        self.term_metrics = [
            keras.metrics.Mean(name=f"{term}_loss") for term in self.loss_weights
        ]

    # === What a subclass defines ===

    @property
    def networks(self):
        """Folder name in a preset -> network whose weights are saved there."""
        raise NotImplementedError

    @property
    def encoder(self):
        """The encoder that is fine-tuned after pretraining."""
        raise NotImplementedError

    def forward_flops(self, length):
        """Returns the FLOPs of one training sequence, forward (see `flops`)."""
        raise NotImplementedError

    def loss_terms(self, outputs):
        """Returns term name -> (value at each position, weight of each position)."""
        raise NotImplementedError

    def update_metrics(self, outputs):
        """Updates the model's own metrics from the outputs of `call`."""

    # === Training ===

    def make_train_function(self, force=False):
        # Made in the first step, its variables would have TensorFlow trace it twice.
        self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Adds up the weighted terms, each the mean over its positions."""
        total = 0.0
        terms = self.loss_terms(y_pred)
        for metric, (name, weight) in zip(
            self.term_metrics, self.loss_weights.items(), strict=True
        ):
            values, weights = terms[name]
            metric.update_state(values, weights)
            total = total + weight * weighted_mean(values, weights)
        self.update_metrics(y_pred)
        return share_of_loss(total)

    # === Presets ===

    @classmethod
    def from_preset(cls, preset, tokenizer=None, **overrides):
        """Makes a model from a named architecture or from a saved directory.

        A name gives the paper's architecture with new weights. A directory gives
        what `save_to_preset` wrote: architecture, tokenizer and weights; loading it
        executes none of its contents.

        Args:
            preset: A key of `presets`, or the path of a directory.
            tokenizer: A tokenizer for a named architecture. A directory has its own.
            overrides: Constructor arguments to change; a dict changes only the
                entries it has, `discriminator={"max_length": 256}`.

        Raises:
            ValueError: Neither a known name nor a directory of a preset, or its
                parts do not fit together.
        """
        if preset in cls.presets:
            config = merge(cls.presets[preset], overrides)
            return cls(**config, tokenizer=tokenizer)
        config, saved_tokenizer = preset_directory.read(preset, cls)
        if tokenizer is not None and saved_tokenizer is not None:
            raise ValueError(
                f"The preset {preset!r} has its own tokenizer; don't pass `tokenizer`."
            )
        model = cls(**merge(config, overrides), tokenizer=saved_tokenizer or tokenizer)
        preset_directory.load_weights(preset, model)
        return model

    def save_to_preset(self, directory):
        """Writes architecture, tokenizer and the weights of all networks.

        Args:
            directory: A new or empty directory, or a preset to overwrite. What is
                there stays intact until the new files are complete.
        """
        preset_directory.write(directory, self)

    def get_config(self):
        return {
            "mask_rate": self.mask_rate,
            "mask_id": self.mask_id,
            "unmaskable_ids": list(self.unmaskable_ids),
            "seed": self.seed,
            "name": self.name,
            "dtype": self.dtype_policy.name,
        }


def merge(config, overrides):
    """Returns `config` with `overrides` laid over it, dict by dict."""
    merged = dict(config)
    for key, value in overrides.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            value = merge(merged[key], value)
        merged[key] = value
    return merged
