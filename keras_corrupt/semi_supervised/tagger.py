"""Tagging with Cross-View Training (Clark's thesis, 4.2.2)."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.encoders import BiLSTMEncoder
from keras_corrupt.encoders.bilstm_cost import bilstm_parameters
from keras_corrupt.models import preset_directory
from keras_corrupt.semi_supervised import objective
from keras_corrupt.semi_supervised.batches import in_order
from keras_corrupt.semi_supervised.presets import PRESETS
from keras_corrupt.semi_supervised.vocabulary import WordVocabulary

#: What auxiliary modules can see of a sentence: see `views_of`.
VIEWS = ("forward", "backward", "future", "past", "full")


def views_of(layers):
    """Returns what each module reads, a dict of `[batch, length, ...]`.

    Only the first layer's directions are restricted: higher layers read both.

    Args:
        layers: What `BiLSTMEncoder` returns.
    """
    forward, backward = layers[0]
    return {
        "forward": forward,  # the word and those before it
        "backward": backward,  # the word and those after it
        "future": ops.pad(forward, [(0, 0), (1, 0), (0, 0)])[:, :-1],  # those before
        "past": ops.pad(backward, [(0, 0), (0, 1), (0, 0)])[:, 1:],  # those after
        "full": ops.concatenate([states for layer in layers for states in layer], -1),
    }


class PredictionModule(keras.layers.Layer):
    """A hidden layer and a softmax: softmax(U ReLU(W h) + b).

    Args:
        hidden_size: Width of the hidden layer.
        num_classes: Number of classes.
    """

    def __init__(self, hidden_size, num_classes, **kwargs):
        super().__init__(**kwargs)
        self.hidden = keras.layers.Dense(
            hidden_size, "relu", use_bias=False, dtype=self.dtype_policy, name="hidden"
        )
        self.output_layer = keras.layers.Dense(
            num_classes, dtype=self.dtype_policy, name="output"
        )

    def build(self, input_shape):
        self.hidden.build(input_shape)
        self.output_layer.build((None, None, self.hidden.units))

    def call(self, states):
        """Returns logits, `[batch, length, classes]`."""
        return self.output_layer(self.hidden(states))


@keras.saving.register_keras_serializable(package="keras_corrupt")
class CrossViewTagger(keras.Model):
    """Tags words, and learns from text without tags what its views agree on.

    It reads a dict of int32 arrays: `word_ids` and `padding_mask`, `[batch, length]`,
    `character_ids`, `[batch, length, characters]`, and for training `labelled`,
    `[batch]`, 1 for sentences whose tags are known. Targets are the tags' indices,
    `[batch, length]`, or -1.

    Only the encoder and the primary module are saved in presets: the auxiliary ones
    are of use in training alone.

    Args:
        words: The vocabulary's words: see `WordVocabulary`.
        characters: Its characters.
        labels: The names of all tags.
        encoder: Sizes of `BiLSTMEncoder` other than its own.
        hidden_size: Width of the prediction modules' hidden layers.
        views: What auxiliary modules there are, of `VIEWS`; none for a model that
            learns from labelled sentences alone.
        labelled_dropout: Dropout rate of words and LSTMs on labelled sentences.
        unlabelled_dropout: That on unlabelled ones.
        label_smoothing: Of known tags.
        tokenizer: `None`; presets of other models have one.

    Example:

    >>> tagger = CrossViewTagger.from_preset(
    ...     "tiny", words=["cats", "sleep"], characters="acelpst", labels=["N", "V"])
    >>> [len(tags) for tags in tagger.predictions([["Cats", "sleep"], ["Cats"]])]
    [2, 1]
    """

    presets = PRESETS
    trained_presets = {}
    network_arguments = {"encoder": BiLSTMEncoder}
    tokenizer = None

    def __init__(
        self,
        words,
        characters,
        labels,
        encoder=None,
        hidden_size=512,
        views=VIEWS,
        labelled_dropout=0.5,
        unlabelled_dropout=0.8,
        label_smoothing=0.1,
        tokenizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # ids
        unknown = [view for view in views if view not in VIEWS]
        if unknown or len(set(views)) != len(views):
            raise ValueError(
                f"`views` must be different ones of {', '.join(VIEWS)}; got {views}."
            )
        if not labels or len(set(labels)) != len(labels):
            raise ValueError(
                f"`labels` must be different names of tags; got {labels!r}."
            )
        rates = {
            "labelled_dropout": labelled_dropout,
            "unlabelled_dropout": unlabelled_dropout,
            "label_smoothing": label_smoothing,
        }
        for name, rate in rates.items():
            if not 0 <= rate < 1:
                raise ValueError(
                    f"`{name}` must be at least 0 and less than 1; got {rate!r}."
                )
        self.vocabulary = WordVocabulary(words, characters)
        self.labels = list(labels)
        self.hidden_size = hidden_size
        self.views = tuple(views)
        self.labelled_dropout = labelled_dropout
        self.unlabelled_dropout = unlabelled_dropout
        self.label_smoothing = label_smoothing
        self.encoder = BiLSTMEncoder(
            self.vocabulary.num_words,
            self.vocabulary.num_characters,
            **(encoder or {}),
            dtype=self.dtype_policy,
            name="encoder",
        )
        self.encoder.build()
        size = self.encoder.projection_size
        whole = 2 * size * len(self.encoder.lstms)

        def module(name, width):
            made = PredictionModule(
                hidden_size, len(self.labels), dtype=self.dtype_policy, name=name
            )
            made.build((None, None, width))
            return made

        self.primary = module("primary", whole)
        self.auxiliary = [
            module(view, whole if view == "full" else size) for view in self.views
        ]
        self.supervised_tracker = keras.metrics.Mean(name="supervised_loss")
        if self.views:
            self.cross_view_tracker = keras.metrics.Mean(name="cross_view_loss")
        self.built = True

    def call(self, inputs, training=False):
        """Returns a dict of what the modules make of sentences.

        Returns:
            `logits`, `[batch, length, tags]`, of the primary module; in training also
            `auxiliary`, a list of those of the others, and `targets`, the primary
            module's probabilities without dropout.
        """
        if not training:
            return {"logits": self.primary(views_of(self.encoder(inputs))["full"])}
        labelled = inputs["labelled"]
        rates = ops.where(labelled > 0, self.labelled_dropout, self.unlabelled_dropout)
        views = views_of(self.encoder(inputs, rates))
        outputs = {"logits": self.primary(views["full"])}
        if self.views:
            outputs["auxiliary"] = [
                module(views[view])
                for view, module in zip(self.views, self.auxiliary, strict=True)
            ]
            outputs["targets"] = self.targets(inputs)
        return outputs

    def targets(self, inputs):
        """Returns the primary module's probabilities without dropout, for learning.

        They cost a pass of the encoder, which a batch without unlabelled sentences
        is spared.
        """
        classes = len(self.labels)
        shape = (*ops.shape(inputs["word_ids"]), classes)
        return ops.stop_gradient(
            ops.cond(
                ops.any(inputs["labelled"] == 0),
                lambda: ops.softmax(ops.cast(self.call(inputs)["logits"], "float32")),
                lambda: ops.full(shape, 1.0 / classes, "float32"),
            )
        )

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """The mean over labelled words, plus the mean over unlabelled ones."""
        words = ops.cast(x["padding_mask"], "float32")
        labelled = ops.cast(x["labelled"], "float32")[:, None] * words
        loss = objective.supervised_loss(
            y_pred["logits"], y, labelled, self.label_smoothing
        )
        self.supervised_tracker.update_state(loss, ops.sum(labelled))
        if "auxiliary" in y_pred:
            unlabelled = words - labelled
            cross_view = objective.cross_view_loss(
                y_pred["targets"], y_pred["auxiliary"], unlabelled
            )
            self.cross_view_tracker.update_state(cross_view, ops.sum(unlabelled))
            loss = loss + cross_view
        return loss

    def predictions(self, sentences, batch_size=64):
        """Returns a list of tags for each sentence, a list of words."""
        sentences = list(sentences)
        check_sentences(sentences)
        found = [[] for _ in sentences]
        for rows, inputs, _ in in_order(sentences, self.vocabulary, None, batch_size):
            logits = np.array(self.predict_on_batch(inputs)["logits"])
            for i, tags in zip(rows, logits.argmax(-1), strict=False):
                found[i] = [self.labels[tag] for tag in tags[: len(sentences[i])]]
        return found

    # === Presets ===

    @property
    def networks(self):
        """What presets hold."""
        return {"encoder": self.encoder, "primary": self.primary}

    @classmethod
    def from_preset(cls, preset, **arguments):
        """Makes a model of a published size, or loads a trained one.

        Args:
            preset: `"tiny"`, `"base"` or `"large"`, for new weights; or a directory
                that `save_to_preset` wrote, whose auxiliary modules are new.
            arguments: For a size `words`, `characters` and `labels`, and any other
                arguments of the class.
        """
        if preset in cls.presets:
            return cls(**{**cls.presets[preset], **arguments})
        config, _ = preset_directory.read(preset, cls)
        return preset_directory.load(preset, cls, {**config, **arguments}, None)

    @classmethod
    def parameters_of(cls, config):
        """Counts the saved weights of what a preset's config describes.

        Raises:
            ValueError: A size in it is none.
        """
        sizes = {
            "vocabulary_size": len(config["words"]) + 2,
            "num_characters": len(config["characters"]) + 4,
            **config["encoder"],
        }
        hidden = config["hidden_size"]
        lists = [v if isinstance(v, list) else [v] for v in sizes.values()]
        for value in sum(lists, [hidden]):
            if type(value) is not int or value < 1:
                raise ValueError(f"a size is {value!r}, no positive whole number")
        width = 2 * sizes["projection_size"] * len(sizes["hidden_sizes"])
        module = width * hidden + (hidden + 1) * len(config["labels"])
        return bilstm_parameters(sizes) + module

    def save_to_preset(self, directory):
        """Writes sizes, vocabulary and weights, whole or not at all.

        Args:
            directory: A new or empty directory, or a preset to overwrite.
        """
        preset_directory.write(directory, self)

    def get_config(self):
        sizes = {
            name: value
            for name, value in self.encoder.sizes.items()
            if name not in ("vocabulary_size", "num_characters")
        }
        return {
            "words": self.vocabulary.words,
            "characters": self.vocabulary.characters,
            "labels": self.labels,
            "encoder": sizes,
            "hidden_size": self.hidden_size,
            "views": list(self.views),
            "labelled_dropout": self.labelled_dropout,
            "unlabelled_dropout": self.unlabelled_dropout,
            "label_smoothing": self.label_smoothing,
            "name": self.name,
            "dtype": self.dtype_policy.name,
        }


def check_sentences(sentences):
    """Raises a `ValueError` unless each sentence is a list of words."""
    for i, words in enumerate(sentences):
        if not (
            isinstance(words, (list, tuple))
            and all(isinstance(word, str) for word in words)
        ):
            raise ValueError(
                f"`sentences[{i}]` must be a list of words, each a string; got "
                f"{words!r}. Split the sentence into words first."
            )
