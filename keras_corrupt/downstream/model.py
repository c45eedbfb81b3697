"""The base of every fine-tuned model: a pretrained encoder, a head, raw text."""

import warnings
from collections.abc import Mapping

from keras import ops

from keras_corrupt.downstream.answering import Answering, no_task
from keras_corrupt.downstream.batches import make_batches
from keras_corrupt.encoders import TextModel, TransformerEncoder
from keras_corrupt.models.pretrainer import Pretrainer
from keras_corrupt.models.sizes import ENCODERS
from keras_corrupt.objectives.loss import added_losses, weighted_mean
from keras_corrupt.presets import Preset
from keras_corrupt.presets.directory import write
from keras_corrupt.presets.registry import registered_name
from keras_corrupt.tokenizers.texts import listed


class DownstreamModel(TextModel):
    """A Transformer encoder with a task's head, from raw examples to predictions.

    A subclass makes `head` in its constructor and defines `features`, `head_outputs`,
    `sequence_losses` and `decode`. It trains with `fit` on what `batches` returns.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`, or one that several
            models have in common.
        tokenizer: The encoder's `Tokenizer`.
        max_length: The longest sequence to read, at most the encoder's own.
        dropout: Dropout rate of encoder, attention and head; the encoder's own if not
            given.
        pretrained_by: Registered name of the class that pretrained the encoder, whose
            paper says how to fine-tune it; `None` where nothing did.
    """

    def __init__(
        self,
        encoder,
        tokenizer,
        max_length=None,
        dropout=None,
        pretrained_by=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not isinstance(encoder, TransformerEncoder):
            if dropout is not None:
                encoder = {**encoder, "dropout": dropout, "attention_dropout": dropout}
            if tokenizer is not None:
                encoder["padding_id"] = tokenizer.padding_id
            named = {"dtype": self.dtype_policy, "name": "encoder"}
            encoder = TransformerEncoder(**encoder, **named)
        self.encoder = encoder
        longest = self.encoder.max_length
        max_length = max_length or longest
        if not 8 <= max_length <= longest:
            raise ValueError(
                f"`max_length` must be from 8 to the encoder's {longest} positions; "
                f"got {max_length}."
            )
        size = 0 if tokenizer is None else tokenizer.vocabulary_size
        if size > self.encoder.vocabulary_size:
            raise ValueError(
                f"`tokenizer` has {size} tokens, more than the encoder's "
                f"{self.encoder.vocabulary_size}. Pass the one of its pretraining."
            )
        self._tokenizer = tokenizer
        self.max_length = max_length
        self.dropout = self.encoder.dropout if dropout is None else dropout
        self.pretrained_by = pretrained_by

    # === What a subclass defines ===

    one_text_a_row = True
    #: Whether the mean of several models' outputs has a meaning.
    can_average = True
    #: The `VocabularyHead` that reads the encoder, of a model that has one.
    vocabulary_head = None
    #: Names of the constructor arguments that decide the head's shape and meaning.
    head_arguments = ()
    #: Names of further arguments that belong to these: a new head has their defaults.
    label_arguments = ()
    #: Names of the soft targets that have a row, or a number, for each token.
    soft_targets_of_tokens = ()
    #: What `Answering` says of the model's examples, beside `answer`.
    row_format = {"columns": ("text", "second_text"), "needed": 1}

    @classmethod
    def arguments_of(cls, start):
        """Returns what a model takes over from a pretrained one beside its encoder.

        Args:
            start: The pretrained or fine-tuned model.

        Returns:
            A dict of constructor arguments.

        Raises:
            ValueError: It lacks what the model needs.
        """
        return {}

    def take_weights(self, start):
        """Starts from the weights of a pretrained or fine-tuned model."""
        self.encoder.set_weights(start.encoder.get_weights())
        self.take_head(start)

    def take_head(self, start):
        """Takes the head's weights too, of a model with the same one."""
        if type(start) is not type(self):
            return
        saved, given = start.get_config(), self.get_config()
        changed = [name for name in self.head_arguments if saved[name] != given[name]]
        if not changed:
            self.head.set_weights(start.head.get_weights())
        elif {*(saved.get("labels") or ())} == {*(given.get("labels") or ())}:
            warnings.warn(
                f"The head is new, because `{changed[0]}` is {given[changed[0]]!r} and "
                f"was {saved[changed[0]]!r}. Leave it out to keep the head.",
                stacklevel=2,
            )

    def features(self, examples, labels=None):
        """Returns a list of `Feature`, one or more for each example.

        Args:
            examples: Raw examples.
            labels: Their labels, for training.

        Raises:
            ValueError: An example or a label is not of the model's kind.
        """
        raise NotImplementedError

    def head_outputs(self, hidden, inputs, training=False):
        """Runs the head.

        Args:
            hidden: What the encoder returned, `[batch, length, hidden_size]`.
            inputs: What `text_inputs` returned.
            training: Whether dropout is active.

        Returns:
            A dict of tensors, `[batch, ...]`.
        """
        raise NotImplementedError

    def sequence_losses(self, outputs, targets):
        """Returns the loss of each sequence, float32 `[batch]`.

        Args:
            outputs: What `head_outputs` returned.
            targets: A dict of targets, as `features` makes them or as `soft_targets`
                does.
        """
        raise NotImplementedError

    def sequence_weights(self, inputs):
        """Returns the weight of each sequence in a batch's loss, or one for all."""
        return 1.0

    def soft_targets(self, features, outputs):
        """Returns what a student learns from this model in the labels' place.

        Args:
            features: What `features` made of examples with labels.
            outputs: What `outputs` returned for those.

        Returns:
            A dict for each feature: a target's name -> the distribution, or number,
            that takes its place.
        """
        raise NotImplementedError

    def calibrate(self, outputs, labels):
        """Takes from development examples what `decode` needs, if it needs anything.

        Args:
            outputs: What `outputs` returned for them.
            labels: Their labels, in the order of the outputs.
        """

    def decode(self, examples, features, outputs):
        """Returns a prediction for each example.

        Args:
            examples: Raw examples.
            features: What `features` made of them.
            outputs: What `outputs` returned for those.
        """
        raise NotImplementedError

    def written(self, examples, predictions, features, outputs):
        """Returns predictions as a file has them: a dict for each, with JSON's values.

        The arguments are `decode`'s arguments and the predictions that it returned.
        """
        return [{"prediction": prediction} for prediction in predictions]

    # === Training and prediction ===

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs)
        hidden = self.encoder(inputs, training=training)
        return self.head_outputs(hidden, inputs, training)

    @property
    def tokenizer(self):
        """The encoder's `Tokenizer`."""
        if self._tokenizer is None:
            raise AttributeError(
                f"This {type(self).__name__} was made of a configuration alone and has "
                "no tokenizer: set its attribute `tokenizer`."
            )
        return self._tokenizer

    @tokenizer.setter
    def tokenizer(self, tokenizer):
        self._tokenizer = tokenizer

    @property
    def padding_id(self):
        """The encoder's."""
        return self.encoder.padding_id

    @property
    def vocabulary_size(self):
        """The encoder's."""
        return self.encoder.vocabulary_size

    def summary(self, *args, **kwargs):
        """Prints the networks: see `keras.Model.summary`."""
        self.encoder.build((None, None))
        super().summary(*args, **kwargs)

    @property
    def networks(self):
        return {"encoder": self.encoder, "head": self.head}

    @property
    def head_config(self):
        """The values of `head_arguments`."""
        config = self.get_config()
        return {name: config[name] for name in self.head_arguments}

    def batches(self, features, batch_size, seed=None, **options):
        """Returns `Batches` for `fit`: see `make_batches`."""
        padding_id = self.tokenizer.padding_id
        return make_batches(
            features, batch_size, self.max_length, padding_id, seed, **options
        )

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """The mean of `sequence_losses`, and what layers add to the loss.

        Weights are `sequence_weights` times `sample_weight`, `[batch]`, if given. `y`
        is a dict as `features` makes it, or what `targets_of` takes.
        """
        if y is not None and not isinstance(y, Mapping):
            y = self.targets_of(y)
        if not isinstance(y, Mapping):
            raise ValueError(
                f"{type(self).__name__} trains on pairs of inputs and targets, such as "
                "`model.batches(model.features(examples, labels), batch_size)`; got "
                f"targets of type {type(y).__name__}."
            )
        losses = self.sequence_losses(y_pred, y)
        weights = ops.ones_like(losses) * self.sequence_weights(x)
        if sample_weight is not None:
            weights = weights * sample_weight
        return weighted_mean(losses, weights) + added_losses(self)

    def targets_of(self, array):
        """Returns the dict that an array of targets stands for, or the array."""
        return array

    def outputs(self, features, batch_size=64):
        """Runs the model on features.

        Returns:
            A list with what `call` returns for each: a dict of arrays; arrays of
            tokens have padding at their end.
        """
        results = [None] * len(features)
        for inputs, _, weights, rows in make_batches(
            features, batch_size, self.max_length, self.tokenizer.padding_id, rows=True
        ):
            batch = self.predict_on_batch(inputs)
            for i, row in enumerate(rows[weights > 0]):
                results[row] = {name: array[i] for name, array in batch.items()}
        return results

    def predictions(self, examples, batch_size=64):
        """Returns a prediction for each raw example.

        Raises:
            ValueError: They are one text, and no list, or one is not of the model's
                kind.
        """
        return self._read(examples, batch_size)[1]

    def answering(self, task=None):
        """Returns the `Answering`: how the model, or its `task`, answers rows."""
        no_task(self, task)
        return Answering(**self.row_format, answer=self._answers)

    def _answers(self, examples, batch_size=64):
        return self.written(*self._read(examples, batch_size))

    def _read(self, examples, batch_size):
        examples = listed(examples, "examples")
        if not examples:
            return [], [], [], []
        features = self.features(examples)
        outputs = self.outputs(features, batch_size)
        return examples, self.decode(examples, features, outputs), features, outputs

    # === Presets ===

    @classmethod
    def from_preset(cls, preset, load_weights=True, tokenizer=None, **arguments):
        """Makes a model on a pretrained encoder, or loads a fine-tuned one.

        Args:
            preset: What `keras_corrupt.presets.Preset` opens. From a pretraining
                model only the encoder is loaded; the head is new. A model of this
                class is loaded whole; but where `arguments` change what the head tells
                (other labels), and from another class, again only the encoder, which
                is how a task starts from one trained before. Or the name of a size
                (`"small"`), for an encoder with new weights.
            load_weights: Whether to load weights, and not only sizes and tokenizer.
            tokenizer: A tokenizer, where the preset has none.
            arguments: Arguments of the class, except `encoder`.

        Raises:
            ValueError: Not a preset, or no tokenizer, or arguments that do not fit.
        """
        start = None
        if preset in ENCODERS:
            config = {"encoder": ENCODERS[preset]}
            if tokenizer is not None:
                size = {"vocabulary_size": tokenizer.vocabulary_size}
                config["encoder"] = {**config["encoder"], **size}
        else:
            start = Preset.open(preset, names=ENCODERS).load()
            tokenizer = start.tokenizer or tokenizer
            same_class = type(start) is cls
            config = start.get_config() if same_class else {}
            if any(name in arguments for name in cls.head_arguments):
                # A head is described as a whole: labels take a score's place.
                replaced = (*cls.head_arguments, *cls.label_arguments)
                config = {k: v for k, v in config.items() if k not in replaced}
            config |= cls.arguments_of(start)
            config["encoder"] = start.encoder.architecture
            config["pretrained_by"] = (
                registered_name(type(start))
                if isinstance(start, Pretrainer)
                else start.pretrained_by
            )
        if tokenizer is None:
            raise ValueError(
                f"The preset {str(preset)!r} has no tokenizer. Name the directory of a "
                "model that was saved with one, or, in Python, pass `tokenizer`."
            )
        model = cls(**{**config, **arguments}, tokenizer=tokenizer)
        if start is not None and load_weights:
            model.take_weights(start)
        return model

    @classmethod
    def from_config(cls, config):
        # A `.keras` file has the tokenizer among its assets.
        return cls(**{"tokenizer": None, **config})

    def save_to_preset(self, directory):
        """Writes architecture, tokenizer and weights, whole or not at all.

        Args:
            directory: A new or empty directory, or a preset to overwrite.
        """
        self.refuse_quantized()
        self.refuse_lora()
        write(directory, self)

    def get_config(self):
        return {
            "encoder": self.encoder.architecture,
            "max_length": self.max_length,
            "dropout": self.dropout,
            "pretrained_by": self.pretrained_by,
            "name": self.name,
            "dtype": self.dtype_policy.name,
        }
