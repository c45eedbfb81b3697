"""The base of models of words on the thesis's BiLSTM (Clark's thesis, 4.2.1, 4.3.1)."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.cross_view.bilstm.encoder import BiLSTMEncoder
from keras_corrupt.cross_view.model import check_rates
from keras_corrupt.cross_view.preset_model import PresetModel
from keras_corrupt.cross_view.presets import PRESETS
from keras_corrupt.cross_view.text.batches import WordBatches
from keras_corrupt.cross_view.text.sentences import Sentences
from keras_corrupt.cross_view.text.vocabulary import WordVocabulary
from keras_corrupt.downstream.answering import Answering, no_task
from keras_corrupt.tokenizers.texts import word_lists


class WordModel(PresetModel):
    """A model on `BiLSTMEncoder`: vocabulary, dropout, presets.

    It reads a dict of int32 arrays: `word_ids` and `padding_mask`, `[batch, length]`,
    `character_ids`, `[batch, length, characters]`, and the inputs of `CrossViewModel`.

    A subclass defines:

    - `views_of(layers, inputs)`, a dict of each module's inputs, from the layers that
      `states` returns; `"full"` is the primary module's.
    - `decoded(logits)`, the prediction for each word of a sentence, from its logits,
      `[words, classes]`, in NumPy.
    - `written(prediction, logits)`, a sentence's prediction as a file has it: a dict of
      values that JSON has.
    - `module_parameters(width, hidden_size, num_labels)`, a class method: the number of
      the primary module's weights.

    Args:
        words: The vocabulary's words: see `WordVocabulary`.
        characters: Its characters.
        labels: See `CrossViewModel`.
        encoder: Sizes of `BiLSTMEncoder` other than its own; or the encoder of another
            model with this vocabulary, to train both together.
        hidden_size: Width of the prediction modules' hidden layers.
        views: See `CrossViewModel`; all `known_views` if not given.
        labelled_dropout: Dropout rate of words and LSTMs on labelled sentences.
        unlabelled_dropout: The same rate on unlabelled sentences.
        label_smoothing: See `CrossViewModel`; `usual_smoothing` if not given.
        tokenizer: `None`; presets of other models have one.
        kwargs: Other arguments of `CrossViewModel`.
    """

    presets = PRESETS
    network_arguments = {"encoder": BiLSTMEncoder}
    usual_smoothing = 0.0
    #: Arguments of the model's `Answering` beside `answer`.
    row_format = {"columns": ("words",), "in_words": True}
    tokenizer = None

    def __init__(
        self,
        words,
        characters,
        labels,
        encoder=None,
        hidden_size=512,
        views=None,
        labelled_dropout=0.5,
        unlabelled_dropout=0.2,
        label_smoothing=None,
        tokenizer=None,
        **kwargs,
    ):
        views = self.known_views if views is None else views
        if label_smoothing is None:
            label_smoothing = self.usual_smoothing
        super().__init__(labels, views, label_smoothing, **kwargs)
        check_rates(
            labelled_dropout=labelled_dropout, unlabelled_dropout=unlabelled_dropout
        )
        self.vocabulary = WordVocabulary(words, characters)
        self.hidden_size = hidden_size
        self.labelled_dropout = labelled_dropout
        self.unlabelled_dropout = unlabelled_dropout
        if not isinstance(encoder, BiLSTMEncoder):
            encoder = BiLSTMEncoder(
                self.vocabulary.num_words,
                self.vocabulary.num_characters,
                **(encoder or {}),
                dtype=self.dtype_policy,
                name="encoder",
            )
            encoder.build()
        self.encoder = encoder
        self.embedding_width = self.encoder.embeddings.size
        self.built = True

    def add_modules(self):
        """Makes the primary module, and the auxiliary ones; constructors call it."""
        size = self.encoder.projection_size
        width = 2 * size * len(self.encoder.lstms)
        self.primary = self.module("primary", width, self.hidden_size)
        self.auxiliary = [
            self.module(view, width if view == "full" else size, self.hidden_size)
            for view in self.module_views
        ]

    # === Methods that `CrossViewModel` calls ===

    def encode(self, inputs, training=False, noise=None):
        return self.views_of(self.states(inputs, training, noise), inputs)

    def states(self, inputs, training=False, noise=None):
        """Returns all layers' states, with the dropout of each sentence's kind."""
        return self.encoder(inputs, self.dropout_rates(inputs, training), noise)

    def dropout_rates(self, inputs, training):
        """Returns each sentence's rate, `[batch]`; `None` where there is no dropout."""
        if not training:
            return None
        labelled = inputs["labelled"] > 0
        return ops.where(labelled, self.labelled_dropout, self.unlabelled_dropout)

    def predict_from(self, encoded, training=False):
        return self.primary(encoded["full"])

    def auxiliary_logits(self, inputs, encoded):
        modules = zip(self.module_views, self.auxiliary, strict=True)
        return {view: module(encoded[view]) for view, module in modules}

    def without_some_words(self, inputs):
        word_ids = inputs["word_ids"]
        drawn = keras.random.uniform(ops.shape(word_ids), seed=self.seed_generator)
        removed = ops.logical_and(drawn < self.word_dropout, word_ids > 0)
        removed_id = ops.cast(self.vocabulary.removed_id, word_ids.dtype)
        return {
            **inputs,
            "word_ids": ops.where(removed, removed_id, word_ids),
            "character_ids": ops.where(removed[..., None], 0, inputs["character_ids"]),
        }

    def words(self, inputs):
        return inputs["padding_mask"]

    def batches(self, sentences, labels=None, batch_size=64, seed=None):
        return WordBatches(sentences, self.vocabulary, labels, batch_size, seed)

    def forward_flops(self, length, training=False):
        encoder = self.encoder.flops(length, self.vocabulary.WIDTH)
        return encoder + self.primary.flops(length)

    @property
    def reads(self):
        """The units of sentences, for a run's banner."""
        vocabulary = self.vocabulary
        return (
            f"{vocabulary.num_words:,} words, {vocabulary.num_characters:,} characters"
        )

    def predictions(self, sentences, batch_size=64):
        """Returns for each sentence, a list of words, a list with one for each word."""
        sentences = word_lists(sentences)
        predictions = [[] for _ in sentences]
        for i, logits in self._logits(sentences, batch_size):
            predictions[i] = self.decoded(logits)
        return predictions

    def answering(self, task=None):
        """Returns how the model answers rows; see `DownstreamModel.answering`."""
        no_task(self, task)
        return Answering(**self.row_format, answer=self._answers)

    def _answers(self, sentences, batch_size=64):
        rows = [self.written([], np.zeros((0, 1))) for _ in sentences]
        for i, logits in self._logits(sentences, batch_size):
            rows[i] = self.written(self.decoded(logits), logits)
        return [
            {"words": list(words), **row}
            for words, row in zip(sentences, rows, strict=True)
        ]

    def _logits(self, sentences, batch_size):
        """Yields the number and the logits, `[words, classes]`, of each sentence."""
        batches = self.batches(Sentences(sentences), batch_size=batch_size)
        for i, logits in self.predicted(batches):
            yield i, logits[: len(sentences[i])]

    # === Presets ===

    @property
    def networks(self):
        """The networks that presets hold."""
        return {"encoder": self.encoder, "primary": self.primary}

    @classmethod
    def parameters_of(cls, config):
        """Counts the saved weights of the model that a preset's config describes.

        Raises:
            ValueError: A size in the config is no positive whole number.
        """
        sizes = {
            "vocabulary_size": len(config["words"]) + 3,
            "num_characters": len(config["characters"]) + 4,
            **config["encoder"],
        }
        hidden = config["hidden_size"]
        check_sizes(hidden, *sizes.values())
        width = 2 * sizes["projection_size"] * len(sizes["hidden_sizes"])
        module = cls.module_parameters(width, hidden, len(config["labels"]))
        return BiLSTMEncoder.parameters(sizes) + module

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
            "labelled_dropout": self.labelled_dropout,
            "unlabelled_dropout": self.unlabelled_dropout,
            **self.training_config,
            "name": self.name,
            "dtype": self.dtype_policy.name,
        }


def check_sizes(*sizes):
    """Raises a `ValueError` unless all sizes, also in lists, are positive integers."""
    lists = [size if isinstance(size, list) else [size] for size in sizes]
    for size in sum(lists, []):
        if type(size) is not int or size < 1:
            raise ValueError(f"a size is {size!r}, no positive whole number")
