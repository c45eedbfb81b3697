"""A tag for each word of a sentence (Clark's thesis, 2.6)."""

import keras
import numpy as np
from keras import ops
from scipy.special import softmax

from keras_corrupt.downstream.batches import Feature
from keras_corrupt.downstream.classification_head import (
    ClassificationHead,
    as_list,
)
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.downstream.soft_targets import cross_entropy
from keras_corrupt.tokenizers.texts import word_lists


@keras.saving.register_keras_serializable(package="keras_corrupt")
class TokenTagger(DownstreamModel):
    """Tags words: parts of speech, chunks, named entities.

    The head is one linear layer on the last hidden vector of each word's first
    piece (Devlin et al., 2019, 5.3). Every word gets one tag: a word of which the
    tokenizer leaves nothing, such as a control character, is read as `[UNK]`, and a
    sentence longer than `max_length` is read in several windows, cut between words.

    Args:
        labels: The names of all tags.
        kwargs: Arguments of `DownstreamModel`.

    Example:

    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "cat", "##s", "sleep"])
    >>> tagger = TokenTagger.from_preset(
    ...     "tiny", tokenizer=tokenizer, labels=["NOUN", "VERB"])
    >>> [len(tags) for tags in tagger.predictions([["Cats", "sleep"], ["Cat"]])]
    [2, 1]
    """

    head_arguments = ("labels",)
    further_inputs = ("word_starts",)
    soft_targets_of_tokens = ("tag",)
    row_format = {"columns": ("words",), "in_words": True}

    def __init__(self, encoder, tokenizer, labels, **kwargs):
        super().__init__(encoder, tokenizer, **kwargs)
        labels = as_list(labels)
        if not labels or len(set(labels)) != len(labels):
            raise ValueError(
                f"`labels` must be different names of tags; got {labels!r}."
            )
        self.labels = labels
        self.head = ClassificationHead(
            self.encoder, len(labels), self.dropout, name="head"
        )
        self.built = True

    def features(self, examples, labels=None):
        """Encodes sentences, each a list of words; see `DownstreamModel.features`."""
        examples = word_lists(examples, "examples")
        distinct = list({word: None for words in examples for word in words})
        pieces = dict(zip(distinct, self.pieces_of(distinct), strict=True))
        classes = None if labels is None else self.indices(examples, labels)
        features = []
        for i, words in enumerate(examples):
            for start, stop in windows(
                [len(pieces[word]) for word in words], self.room
            ):
                window = [pieces[word] for word in words[start:stop]]
                tags = None if classes is None else classes[i][start:stop]
                features.append(self.feature(window, tags, i))
        return features

    @property
    def room(self):
        """Word pieces that a window holds, between `[CLS]` and `[SEP]`."""
        return self.max_length - 2

    def pieces_of(self, words):
        """Returns the token ids of each word's pieces, at least one."""
        # After a space, as within a sentence.
        encoded = self.tokenizer.encode_batch([f" {word}" for word in words])
        unknown = [self.tokenizer.unknown_id]
        return [ids[: self.room] or unknown for ids in encoded]

    def indices(self, examples, labels):
        """Returns the indices of the tags of each sentence."""
        if len(labels) != len(examples):
            raise ValueError(
                f"`labels` must be one list of tags for each example; got "
                f"{len(labels)} for {len(examples)} examples."
            )
        index_of = {label: i for i, label in enumerate(self.labels)}
        for i, (words, tags) in enumerate(zip(examples, labels, strict=True)):
            if len(tags) != len(words):
                raise ValueError(
                    f"`labels[{i}]` has {len(tags)} tags for the {len(words)} words of "
                    f"`examples[{i}]`; give one for each."
                )
            unknown = [tag for tag in tags if tag not in index_of]
            if unknown:
                raise ValueError(
                    f"`labels[{i}]` has the unknown tag {unknown[0]!r}; the model's "
                    f"are {self.labels}."
                )
        return [[index_of[tag] for tag in tags] for tags in labels]

    def feature(self, words, tags, example):
        """Returns the `Feature` of words in pieces; tags stand at first pieces."""
        token_ids = [
            self.tokenizer.classify_id,
            *sum(words, []),
            self.tokenizer.separate_id,
        ]
        starts = np.cumsum([1] + [len(pieces) for pieces in words])[:-1]

        def at_starts(values):
            array = np.zeros(len(token_ids), "int32")
            array[starts] = values
            return array

        inputs = {
            "token_ids": np.array(token_ids, "int32"),
            "segment_ids": np.zeros(len(token_ids), "int32"),
            "word_starts": at_starts(1),
        }
        return Feature(
            inputs, {} if tags is None else {"tag": at_starts(tags)}, example
        )

    def head_outputs(self, hidden, inputs, training=False):
        return {
            "logits": self.head(hidden, training=training),  # [batch, length, tags]
            "word_starts": inputs["word_starts"],
        }

    def sequence_losses(self, outputs, targets):
        """The mean cross-entropy of each sequence's words."""
        values = cross_entropy(targets["tag"], outputs["logits"])  # [batch, length]
        weights = ops.cast(outputs["word_starts"], "float32")
        words = ops.sum(weights, axis=1)
        return ops.sum(values * weights, axis=1) / ops.maximum(words, 1.0)

    def sequence_weights(self, inputs):
        """Returns the number of words, so that each has the same weight."""
        return ops.sum(ops.cast(inputs["word_starts"], "float32"), axis=1)

    def soft_targets(self, features, outputs):
        logits = [
            output["logits"][: len(feature.inputs["token_ids"])]
            for feature, output in zip(features, outputs, strict=True)
        ]
        return [{"tag": softmax(rows, axis=-1)} for rows in logits]

    def decode(self, examples, features, outputs):
        """Returns the tags of each example's words."""
        tags = [[] for _ in examples]
        for example, logits in self._of_words(features, outputs):
            tags[example] += [self.labels[i] for i in logits.argmax(axis=1)]
        return tags

    def written(self, examples, predictions, features, outputs):
        """Returns each sentence's words, their tags and the tags' probabilities."""
        chances = [[] for _ in examples]
        for example, logits in self._of_words(features, outputs):
            chances[example] += softmax(logits, axis=-1).max(axis=1).tolist()
        return [
            {"words": list(words), "tags": tags, "probabilities": probable}
            for words, tags, probable in zip(
                examples, predictions, chances, strict=True
            )
        ]

    def _of_words(self, features, outputs):
        """Yields each window's example, and the logits of its words."""
        for feature, output in zip(features, outputs, strict=True):
            yield feature.example, output["logits"][output["word_starts"] > 0]

    def get_config(self):
        return {**super().get_config(), "labels": self.labels}


def windows(lengths, room):
    """Cuts a sentence between words into as few windows as hold it.

    Args:
        lengths: Pieces of each word, none more than `room`.
        room: Pieces that a window holds.

    Returns:
        A list of `(start, stop)` in words; one for no words.

    >>> windows([2, 2, 1, 4], 4)
    [(0, 2), (2, 3), (3, 4)]
    """
    ranges, start, used = [], 0, 0
    for i, length in enumerate(lengths):
        if used + length > room:
            ranges.append((start, i))
            start, used = i, 0
        used += length
    return [*ranges, (start, len(lengths))]
