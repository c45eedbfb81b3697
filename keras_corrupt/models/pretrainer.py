"""The base of every pretraining model: networks, a corrupter and objectives."""

from collections.abc import Mapping

import keras
import numpy as np
from keras import ops

from keras_corrupt.corruption.masker import Masker
from keras_corrupt.devices.guests import invites_guests
from keras_corrupt.devices.replicas import SeedGenerator, replica_loss
from keras_corrupt.encoders import TextModel, TransformerEncoder
from keras_corrupt.models import fine_tuning, micro_batches
from keras_corrupt.models.flat_outputs import FlatOutputs
from keras_corrupt.models.one_state import warn_of_one_state, why_dead
from keras_corrupt.models.options import check_arguments
from keras_corrupt.models.vocabulary_size import check_fits, size_argument
from keras_corrupt.objectives import loss
from keras_corrupt.objectives.objectives import Objectives
from keras_corrupt.objectives.rendering import render
from keras_corrupt.presets import Preset
from keras_corrupt.presets.directory import write
from keras_corrupt.presets.overrides import merge
from keras_corrupt.presets.sizes import SIZES


class NoEncoderError(ValueError, AttributeError):
    """A model has no `encoder`: `hasattr` says so, and a user reads why."""


@invites_guests
class Pretrainer(TextModel):
    """Learns from corrupted text by objectives.

    A subclass makes its networks and its `objectives` in the constructor, and in `call`
    corrupts text and returns what the objectives read. What else is true of it alone
    it says in the methods and attributes below. Training, presets and command lines
    need nothing more: README.md in this folder has an example.

    Args:
        vocabulary_size: Number of token ids of all networks.
        max_length: The longest sequence all networks can read.
        mask_rate: Fraction of tokens to corrupt, between 0 and 1, both excluded.
        masking: The unit that is chosen to be corrupted: a `"token"`, a `"whole_word"`
            (Devlin et al., 2019, in their later releases), or a `"span"` of words
            (Joshi et al., 2020). The latter two need the tokenizer.
        span_length: Mean number of words in a span.
        span_lengths: `"geometric"` or `"fixed"`: how spans' lengths are distributed.
        num_masks: Masks of each sequence in a training step, which go through the model
            as that many sequences; the gradient is their mean.
        disjoint_masks: Whether the masks of a sequence have nothing in common, so that
            `num_masks * mask_rate` is 1 at most: fully-explored masks (Zheng et al.,
            2020, algorithm 1). Otherwise each is drawn by itself.
        mask_id: Id of the mask token.
        unmaskable_ids: Ids never corrupted. The default ids are from BERT's English
            vocabulary.
        seed: Seed of masking and sampling.
        tokenizer: A `Tokenizer`; its ids then take the place of `mask_id` and
            `unmaskable_ids`. Needed for raw strings, not for training on ids.
    """

    #: Preset name -> constructor arguments.
    presets = {}
    #: Name -> directory of a preset that comes with the system, weights included.
    trained_presets = {}
    #: Constructor argument that describes a network -> that network's class. The first
    #: is the network which is fine-tuned later.
    network_arguments = {"encoder": TransformerEncoder}
    #: Whether a training step may have several masks of each text.
    several_masks = False
    #: Parts of equal size that a training step goes through one after the other.
    micro_batches = 1
    #: While such a part is traced: name of a loss term -> weight of all parts.
    weight_sums = {}
    #: Fewest sequences of a batch from which all terms can be learned.
    smallest_batch = 1
    #: Roles of the tokenizer's special tokens that are never corrupted.
    unmaskable_roles = ("padding", "classify", "separate")
    #: Whether `token_log_probabilities` masks each token in turn.
    masks_each_token = False
    #: Names of networks that the model's preset has not, and that were not trained yet.
    untrained_networks = ()

    def __init__(
        self,
        vocabulary_size,
        max_length,
        mask_rate=0.15,
        masking="token",
        span_length=3.0,
        span_lengths="geometric",
        num_masks=1,
        disjoint_masks=True,
        mask_id=103,
        unmaskable_ids=(0, 101, 102),
        seed=0,
        tokenizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_masks != 1 and not self.several_masks:
            raise ValueError(
                f"{type(self).__name__} has one mask of each text: leave out "
                f"`num_masks={num_masks}`."
            )
        if tokenizer is not None:
            check_fits(type(self), tokenizer, vocabulary_size)
            mask_id = tokenizer.mask_id
            unmaskable_ids = tuple(
                tokenizer.role_ids[role] for role in self.unmaskable_roles
            )
        if not all(0 <= i < vocabulary_size for i in (mask_id, *unmaskable_ids)):
            raise ValueError(
                f"`mask_id` {mask_id} and `unmaskable_ids` {tuple(unmaskable_ids)} "
                f"must be ids below vocabulary_size={vocabulary_size}. Pass the ids "
                "of your vocabulary, or its `tokenizer`."
            )
        self.vocabulary_size = vocabulary_size
        self.max_length = max_length
        self.mask_id = mask_id
        self.unmaskable_ids = tuple(unmaskable_ids)
        self.seed = seed
        self.tokenizer = tokenizer
        self.seed_generator = SeedGenerator(seed)
        options = {
            "mask_rate": mask_rate,
            "masking": masking,
            "span_length": span_length,
            "span_lengths": span_lengths,
            "num_masks": num_masks,
            "disjoint_masks": disjoint_masks,
        }
        self.masker = Masker(
            options, self.unmaskable_ids, self.seed_generator, self.word_starts
        )

    def learn_by(self, **objectives):
        """Sets what the model learns from, at the end of its constructor.

        Args:
            objectives: Name of a loss term -> its `Objective`. Without a weight, an
                objective is measured alone.
        """
        *_, kept = self.networks
        self.objectives = Objectives(objectives, kept)
        self.loss_weights = self.objectives.weights
        self.term_metrics = {
            term: keras.metrics.Mean(name=f"{term}_loss") for term in self.loss_weights
        }
        self.objective_metrics = [
            metric
            for objective in objectives.values()
            for metric in vars(objective).values()
            if isinstance(metric, keras.metrics.Metric)
        ]
        self.built = True

    # === What a subclass defines ===

    @property
    def networks(self):
        """Folder name in a preset -> network whose weights are saved there."""
        raise NotImplementedError

    @property
    def encoder(self):
        """The encoder that is fine-tuned after pretraining."""
        raise NoEncoderError(f"{type(self).__name__} has no `encoder` to fine-tune.")

    @property
    def vocabulary_head(self):
        """The `VocabularyHead` that reads `encoder`; `None` where nothing does."""
        return None

    def use_unigrams(self, counts):
        """Is told how often each token is in the training text, before training.

        Args:
            counts: int `[tokens]`, NumPy.
        """

    def token_log_probabilities(self, inputs):
        """Returns log p(x_t | all other tokens), `[batch, length]`, if it knows it."""
        raise NotImplementedError

    def forward_flops(self, length):
        """Returns the FLOPs of one training sequence, forward (`encoders/cost.py`)."""
        raise NotImplementedError

    def activation_bytes(self, batch_size, length):
        """Returns the most memory that a step's activations take, in bytes."""
        raise NotImplementedError

    def token_states(self, inputs):
        """Returns the states by whose `token_spread` the model is known to be alive.

        Args:
            inputs: What `text_inputs` returned.

        Returns:
            `[batch, length, hidden]`.
        """
        return self.encoder(inputs, training=False)

    # === What follows from its parts ===

    @property
    def padding_id(self):
        """The tokenizer's padding id, or the encoder's where there is no tokenizer."""
        return (self.tokenizer or self.encoder).padding_id

    def with_padding(self, encoder):
        """Returns an encoder's arguments with the tokenizer's padding id, if any."""
        if self.tokenizer is None or isinstance(encoder, TransformerEncoder):
            return encoder
        return {**encoder, "padding_id": self.tokenizer.padding_id}

    def word_starts(self):
        """Returns which tokens begin a word, booleans `[vocabulary]`, NumPy.

        Raises:
            ValueError: The model has no tokenizer to tell.
        """
        if self.tokenizer is None:
            raise ValueError(
                f"`masking={self.masker.options['masking']!r}` needs the model's "
                "tokenizer, which knows where words begin: pass `tokenizer`, or load a "
                "saved preset."
            )
        starts = self.tokenizer.word_starts
        return np.pad(starts, (0, self.vocabulary_size - len(starts)))

    def text_inputs(self, inputs, training=False):
        """Returns the networks' inputs, each sequence once for each of its masks.

        Outside training a sequence has one mask.

        Args:
            inputs: What `keras_corrupt.encoders.text_model.text_inputs` takes.
            training: Whether a training step reads them.

        Returns:
            A dict of arrays `[batch * masks, length]`; see `Masker.repeated`.
        """
        inputs = super().text_inputs(inputs)
        return self.masker.repeated(inputs) if training else inputs

    def summary(self, *args, **kwargs):
        """Prints the networks: see `keras.Model.summary`."""
        for network in self.networks.values():
            network.build((None, None))  # their layers are built; this tells the shape
        super().summary(*args, **kwargs)

    # === What a run shows ===

    def collapse(self, metrics):
        """Says by what one sees that the model has died.

        Args:
            metrics: The model's validation metrics, and `token_spread`.

        Returns:
            A clause; an empty text while the model lives.
        """
        return why_dead(metrics["token_spread"], metrics.get("rtd_auc"))

    def describe_examples(self, inputs):
        """Describes what the model does to some examples.

        Args:
            inputs: The model's inputs, NumPy arrays `[batch, length]`.

        Returns:
            A list of strings, one for each example, as `Objectives.examples_legend`
            explains; an empty list if no objective describes any.
        """
        shown = self.objectives.shown
        if shown is None:
            return []
        outputs = keras.tree.map_structure(
            ops.convert_to_numpy, self(inputs, training=False)
        )

        def describe(row, ids):
            return shown.describe(outputs, row, ids, self.tokenizer.readable)

        return render(self.tokenizer, inputs, describe)

    # === Training ===

    def train_step(self, *args):
        if self.micro_batches == 1:
            return super().train_step(*args)
        return micro_batches.train_step(self, *args)

    def make_train_function(self, force=False):
        # Made in the first step, its variables would have TensorFlow trace it twice.
        self.optimizer.build(self.trainable_variables)
        self.untrained_networks = tuple(
            n for n in self.untrained_networks if not self.networks[n].trainable
        )
        return super().make_train_function(force)

    def fit(self, x=None, *args, sample_weight=None, class_weight=None, **kwargs):
        """Trains: see `TextModel.fit`. There are no classes, so no `class_weight`."""
        if class_weight is not None:
            raise ValueError(
                f"`class_weight` is of no use to {type(self).__name__}, which learns "
                "no classes; pass `sample_weight`, a number for each sequence."
            )
        return super().fit(loss.with_weights(x, sample_weight), *args, **kwargs)

    def evaluate(self, x=None, *args, sample_weight=None, **kwargs):
        """Computes loss and metrics: see `keras.Model.evaluate`."""
        return super().evaluate(loss.with_weights(x, sample_weight), *args, **kwargs)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """Adds up the weighted terms, each the mean over its positions.

        Where the inputs have a `sample_weight`, `[batch]`, the mean is weighted by it;
        the other metrics are not. What layers add to the loss comes on top.
        """
        if y is not None:
            raise ValueError(
                f"{type(self).__name__} takes no targets: what it learns to predict is "
                "made of the text. Weights of sequences are `sample_weight` in the "
                "inputs' dict."
            )
        total = 0.0
        terms = self.weighted_terms(x, y_pred, training, sample_weight)
        for name, (values, weights) in terms.items():
            self.term_metrics[name].update_state(values, weights)
            mean = loss.weighted_mean(values, weights, self.weight_sums.get(name))
            total = total + self.loss_weights[name] * mean
        self.objectives.update_metrics(y_pred)
        parts = self.micro_batches if self.weight_sums else 1
        return replica_loss(total + loss.added_losses(self) / parts)

    def weighted_terms(self, x, outputs, training, sample_weight=None):
        """Returns term name -> (values, weights); weights of sequences are in them."""
        if sample_weight is None and isinstance(x, Mapping):
            sample_weight = x.get("sample_weight")
        if sample_weight is not None and training:
            sample_weight = ops.repeat(sample_weight, self.masker.num_masks, axis=0)
        terms = {}
        for name in self.loss_weights:
            values, weights = self.objectives[name].loss(outputs)
            terms[name] = values, loss.of_sequences(weights, sample_weight)
        return terms

    # === Files ===

    def export(self, *args, **kwargs):
        """Exports the model: see `TextModel.export`.

        The outputs are arrays by names such as `mlm_logits` and `corrupted_token_ids`.
        """
        return FlatOutputs(self).export(*args, **kwargs)

    @classmethod
    def from_preset(cls, preset, tokenizer=None, **overrides):
        """Makes a model from a named architecture or from a saved directory.

        A name of `presets` gives the paper's architecture with new weights. A directory
        gives what `save_to_preset` wrote: architecture, tokenizer and weights; loading
        it executes none of its contents. A name of `trained_presets` stands for one.

        Args:
            preset: A key of `presets`, or what `keras_corrupt.presets.Preset` opens.
            tokenizer: A tokenizer for a named architecture, whose vocabulary gets its
                size. A directory has its own.
            overrides: Constructor arguments to change; a dict changes only the
                entries it has. With more positions than a directory's,
                `discriminator={"max_length": 256}`, the new ones start as copies of
                the trained ones. See `Preset.load`.

        Raises:
            ValueError: Neither a known name nor a directory of a preset, or its
                parts do not fit together, or an override is no argument.
        """
        if preset in cls.presets:
            check_arguments(cls, overrides)
            config = cls.presets[preset]
            if tokenizer is not None:
                config = merge(config, size_argument(cls, tokenizer))
            return cls(**merge(config, overrides), tokenizer=tokenizer)
        check_arguments(cls, overrides, fixed={*SIZES} - {"max_length"})
        saved = Preset.open(preset, names=cls.presets).of(cls)
        if tokenizer is not None and saved.tokenizer is not None:
            raise ValueError(f"{preset} has its own tokenizer; don't pass `tokenizer`.")
        return saved.load(tokenizer, **overrides)

    def check_loaded(self, source):
        """Warns if the model, which was loaded from `source`, has died."""
        warn_of_one_state(self, source)

    def save_to_preset(self, directory, dtype=None):
        """Writes architecture, tokenizer and the weights of all networks.

        Args:
            directory: A new or empty directory, or a preset to overwrite. Its old
                files stay intact until the new files are complete.
            dtype: Precision of the weights in the files, such as `"float16"` for half
                the size; the variables' own if not given. Arrays with a number too
                large for it keep their own.

        Networks in `untrained_networks` are not written.

        Raises:
            ValueError: `dtype` is no precision of floats.
        """
        if dtype is not None and not keras.backend.is_float_dtype(dtype):
            raise ValueError(f"`dtype` must be a type of floats; got {dtype!r}.")
        self.refuse_quantized()
        self.refuse_lora()
        write(directory, self, dtype, self.untrained_networks)

    def get_config(self):
        return {
            **self.masker.options,
            "mask_id": self.mask_id,
            "unmaskable_ids": list(self.unmaskable_ids),
            "seed": self.seed,
            "name": self.name,
            "dtype": self.dtype_policy.name,
        }

    # === Fine-tuning ===

    @classmethod
    def fine_tuning(cls, size, task):
        """Returns the paper's `FineTuningSettings` of the encoder for a task.

        Args:
            size: `"tiny"`, `"small"`, `"base"` or `"large"`.
            task: The task's name, `"squad..."` for question answering.
        """
        return fine_tuning.settings(size, task)

    @classmethod
    def fine_tuning_search(cls, size, task):
        """Returns what the paper searched for a task: name of a setting -> values.

        Args:
            size: See `fine_tuning`.
            task: See `fine_tuning`.
        """
        return fine_tuning.search_space(size, task)
