"""Texts as vectors whose cosines tell how much alike texts are in meaning.

Gao et al., "SimCSE: Simple contrastive learning of sentence embeddings", 2021,
equations 1 and 5; Reimers and Gurevych, "Sentence-BERT", 2019, for the pooling. With a
pair (x, x+), perhaps a hard negative x-, and the temperature t:

    L = -log exp(cos(x, x+) / t) / sum over y of exp(cos(x, y) / t)

where y goes through all x+ and x- of the batch.
"""

from collections.abc import Mapping

import keras
import numpy as np
from keras import ops

from keras_corrupt.devices.replicas import gather_from_replicas
from keras_corrupt.downstream.batches import Feature
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.objectives.contrastive import info_nce, unit_vectors
from keras_corrupt.objectives.loss import added_losses, weighted_mean
from keras_corrupt.tokenizers.texts import text_list, text_tuples


@keras.saving.register_keras_serializable(package="keras_corrupt")
class SentenceEncoder(DownstreamModel):
    """Gives texts vectors of length 1, and learns them from pairs of texts.

    A vector is the mean of the last hidden vectors of a text's tokens, special ones
    too. The two texts of a pair are drawn towards each other, and the first one away
    from the other pairs' second texts and from all hard negatives. The batch in which
    texts are contrasted is the batch of all devices. A text that stands in the batch
    several times is no negative of itself, nor of the other text of its pair.

    Examples to learn from are pairs of strings, or pairs with a hard negative as third
    string; labels are not read. `predictions` gives a vector for a string, and the
    cosine of the first two for a tuple of strings. Texts longer than `max_length` are
    cut at their end.

    Args:
        temperature: The number that cosines are divided by; SimCSE has 0.05.
        symmetric: Whether the second text of a pair learns to find the first one among
            all first ones, too; the loss is the mean of both directions.
        kwargs: Arguments of `DownstreamModel`.

    Example:

    >>> from keras_corrupt.downstream import SentenceEncoder
    >>> encoder = SentenceEncoder.from_preset("tiny_en")
    >>> vectors = encoder.encode(["A ship at sea.", "A boat.", "A law."])
    >>> vectors.shape
    (3, 128)
    """

    can_average = False

    def __init__(self, encoder, tokenizer, temperature=0.05, symmetric=False, **kwargs):
        super().__init__(encoder, tokenizer, **kwargs)
        if isinstance(temperature, str) or not 0 < temperature < np.inf:
            raise ValueError(
                f"`temperature` must be a number above 0, such as 0.05; got "
                f"{temperature!r}."
            )
        self.temperature, self.symmetric = temperature, symmetric
        self.built = True

    @property
    def networks(self):
        return {"encoder": self.encoder}

    def take_head(self, start):
        """Does nothing: a SentenceEncoder has no head."""

    def features(self, examples, labels=None):
        """Encodes each text of each example; see `DownstreamModel.features`.

        The targets are a text's `place` in its example, and the `text`'s number: equal
        texts have the same.
        """
        rows = text_tuples(examples, "examples", (1, 2, 3))
        texts = [text for row in rows for text in row]
        numbers = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        encoded = iter(self.tokenizer.encode_batch(texts))
        features = []
        for i, row in enumerate(rows):
            for place, text in enumerate(row):
                ids = next(encoded)[: self.max_length - 2]
                ids = [self.tokenizer.classify_id, *ids, self.tokenizer.separate_id]
                token_ids = np.array(ids, "int32")
                inputs = {"token_ids": token_ids, "segment_ids": 0 * token_ids}
                targets = {"place": place, "text": numbers[text]}
                features.append(Feature(inputs, targets, i))
        return features

    def batches(self, features, batch_size, seed=None):
        """Returns `Batches` for `fit`.

        Args:
            features: Features of pairs, or of pairs with a hard negative.
            batch_size: Pairs in a batch.
            seed: See `make_batches`.

        Raises:
            ValueError: They are something else, or a batch has no negative.
        """
        counts = np.bincount([feature.example for feature in features] or [0])
        if counts.min() < 2 or counts.min() != counts.max():
            raise ValueError(
                "`features` must come from examples that all have two texts, or that "
                "all have three."
            )
        if counts[0] == 2 and min(batch_size, len(counts)) < 2:
            raise ValueError(
                "A batch needs two pairs at least: the negatives of a text are in the "
                f"other pairs. Got {len(counts)} pairs and `batch_size` {batch_size}."
            )
        return super().batches(features, batch_size, seed, together=int(counts[0]))

    def head_outputs(self, hidden, inputs, training=False):
        mask = ops.cast(inputs["padding_mask"], "float32")[..., None]
        total = ops.sum(ops.cast(hidden, "float32") * mask, axis=1)
        return {"vectors": unit_vectors(total)}

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """The mean of `pair_losses`, weighted by `sample_weight`, `[batch]`.

        Rows without weight are no negatives.
        """
        if not isinstance(y, Mapping) or not {"place", "text"} <= set(y):
            raise ValueError(
                "SentenceEncoder trains on `model.batches(model.features(pairs), "
                "batch_size)`."
            )
        place = y["place"]
        weights = ops.ones_like(place, "float32")
        if sample_weight is not None:
            weights = weights * sample_weight
        losses = pair_losses(
            y_pred["vectors"], place, y["text"], weights > 0, self.temperature
        )
        learns = place <= 1 if self.symmetric else place == 0
        weights = weights * ops.cast(learns, "float32")
        return weighted_mean(losses, weights) + added_losses(self)

    def encode(self, texts, batch_size=64):
        """Returns the vectors of texts, float32 `[texts, hidden_size]`, of length 1.

        Raises:
            ValueError: `texts` is one text, and no list, or has something else in it.
        """
        vectors = self.predictions(text_list(texts), batch_size)
        return np.array(vectors, "float32").reshape(-1, self.encoder.hidden_size)

    def decode(self, examples, features, outputs):
        """Returns the vector of each string, and the cosine of each pair."""
        vectors = [[] for _ in examples]
        for feature, output in zip(features, outputs, strict=True):
            vectors[feature.example].append(output["vectors"])
        return [v[0] if len(v) == 1 else float(v[0] @ v[1]) for v in vectors]

    def written(self, examples, predictions, features, outputs):
        """Returns the vector of each string, and the cosine of each pair."""
        return [
            {"cosine": value} if np.isscalar(value) else {"vector": value.tolist()}
            for value in predictions
        ]

    def get_config(self):
        return {
            **super().get_config(),
            "temperature": self.temperature,
            "symmetric": self.symmetric,
        }


def pair_losses(vectors, place, text, present, temperature):
    """Returns how hard it is to find each text's partner, float32 `[rows]`.

    The partner of a first text is the row below it, and the partner of a second text
    is the row above it. The loss of other rows means nothing.

    Args:
        vectors: float32 `[rows, size]`, of length 1: pair by pair, a first text, a
            second one, perhaps a hard negative.
        place: int32 `[rows]`: 0 for first texts, 1 for second ones, 2 for others.
        text: int32 `[rows]`, the text's number: equal texts have the same.
        present: Boolean `[rows]`: others are no candidates.
        temperature: The number that cosines are divided by.

    >>> vectors = np.eye(4, dtype="float32")[[0, 0, 1, 1]]
    >>> rows = np.array([0, 1, 0, 1]), np.arange(4), np.ones(4, bool)
    >>> loss = pair_losses(vectors, *rows, temperature=1.0)
    >>> bool(np.allclose(loss, np.log1p(np.exp(-1))))  # one wrong candidate
    True
    """
    present = ops.cast(present, "int32")
    all_vectors, places, texts, all_present = map(
        gather_from_replicas, (vectors, place, text, present)
    )
    partner = ops.arange(ops.shape(place)[0]) + ops.where(place == 0, 1, -1)
    partners = ops.take(vectors, partner, axis=0)
    positive = ops.sum(vectors * partners, axis=1) / temperature
    logits = ops.matmul(vectors, ops.transpose(all_vectors)) / temperature
    rivals = (place == 0)[:, None] != (places == 0)  # first texts look for others
    for own in (text, ops.take(text, partner)):
        rivals = ops.logical_and(rivals, own[:, None] != texts)
    return info_nce(positive, logits, ops.logical_and(rivals, all_present > 0))
