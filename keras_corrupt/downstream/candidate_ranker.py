"""The candidate that a pronoun stands for (Clark's thesis, 5.2.4).

The model reads a text with a candidate in the pronoun's place, and gives the
candidate's tokens a high score if the pronoun means it.
"""

import operator
from collections import defaultdict

import keras
import numpy as np
from keras import ops
from scipy.special import expit

from keras_corrupt.downstream.batches import Feature
from keras_corrupt.downstream.classification_head import ClassificationHead
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.downstream.span_windows import token_span
from keras_corrupt.tasks.glue.winograd import find_schema, other_candidates
from keras_corrupt.tokenizers.texts import text_tuples

LABELS = ("0", "1")


@keras.saving.register_keras_serializable(package="keras_corrupt")
class CandidateRanker(DownstreamModel):
    """Tells whether a pronoun stands for a candidate.

    Examples are pairs of strings, a text and a sentence with a candidate in the place
    of a pronoun of the text; see `find_schema`. The head is one linear layer on each
    last hidden vector, as the discriminator's output; a candidate's score is the mean
    over its tokens. It trains as a binary classifier of candidates, and where the right
    one is known, the other phrases of the text are wrong ones.

    Among several candidates for the same pronoun, the one with the highest score is
    right. A single candidate is right if it scores higher than the other phrases of
    the text; where there are no other phrases, if its score is positive.

    Args:
        fallback: The label, `"0"` or `"1"`, where no pronoun is found.
        kwargs: Arguments of `DownstreamModel`.
    """

    head_arguments = ("fallback",)
    further_inputs = ("candidate",)
    # The candidates for a text's pronoun are compared.
    row_format = {
        "columns": ("text", "second_text"),
        "group": operator.itemgetter(0),
    }

    def __init__(self, encoder, tokenizer, fallback="0", **kwargs):
        super().__init__(encoder, tokenizer, **kwargs)
        if fallback not in LABELS:
            raise ValueError(f"`fallback` must be one of {LABELS}; got {fallback!r}.")
        self.fallback = fallback
        self.head = ClassificationHead(self.encoder, 1, self.dropout, name="head")
        self.built = True

    def features(self, examples, labels=None):
        """Puts candidates in place; see `DownstreamModel.features`.

        An example's first feature is its own candidate's; other phrases' features
        follow. Examples without a pronoun have none.
        """
        examples = text_tuples(examples, "examples", (2,))
        rows = []  # (example, text with the candidate in place, targets)
        for i, example in enumerate(examples):
            label = None if labels is None else labels[i]
            if label is not None and label not in LABELS:
                raise ValueError(f"A label must be one of {LABELS}; got {label!r}.")
            schema = find_schema(*example)
            if schema is None:
                continue
            targets = {} if label is None else {"right": float(label)}
            rows.append((i, schema, targets))
            if label != "0":  # nothing is known about a wrong candidate's rivals
                targets = {} if label is None else {"right": 0.0}
                for other in other_candidates(schema):
                    rows.append((i, schema._replace(candidate=other), targets))
        # Whole, for a token may depend on the space before it.
        texts = ["".join(schema.parts) for _, schema, _ in rows]
        encoded = self.tokenizer.encode_with_offsets(texts)
        features = []
        for (i, schema, targets), (ids, offsets) in zip(rows, encoded, strict=True):
            end = schema.start + len(schema.candidate)
            first, last = token_span(offsets, schema.start, end)
            before, candidate, after = window(
                *np.split(ids, [first, last + 1]), self.max_length - 2
            )
            token_ids = [self.tokenizer.classify_id, *before, *candidate, *after]
            token_ids = np.array([*token_ids, self.tokenizer.separate_id], "int32")
            in_candidate = np.zeros_like(token_ids)
            in_candidate[len(before) + 1 :][: len(candidate)] = 1
            inputs = {
                "token_ids": token_ids,
                "segment_ids": np.zeros_like(token_ids),
                "candidate": in_candidate,
            }
            features.append(Feature(inputs, targets, i))
        return features

    def head_outputs(self, hidden, inputs, training=False):
        logits = self.head(hidden, training=training)[..., 0]  # [batch, length]
        candidate = ops.cast(inputs["candidate"], logits.dtype)
        count = ops.maximum(ops.sum(candidate, axis=1), 1)
        return {"score": ops.sum(logits * candidate, axis=1) / count}

    def sequence_losses(self, outputs, targets):
        """Binary cross-entropy."""
        return ops.binary_crossentropy(
            targets["right"], outputs["score"], from_logits=True
        )

    def soft_targets(self, features, outputs):
        return [{"right": expit(output["score"])} for output in outputs]

    def outputs(self, features, batch_size=64):
        # There are no features where no example has a pronoun.
        return super().outputs(features, batch_size) if features else []

    def decode(self, examples, features, outputs):
        """Returns a label for each example."""
        scores = defaultdict(list)
        for feature, output in zip(features, outputs, strict=True):
            scores[feature.example].append(float(output["score"]))
        schemas = [find_schema(*example) for example in examples]
        rivals = defaultdict(dict)
        for i, schema in enumerate(schemas):
            if schema is not None:
                rivals[schema.pronoun][schema.candidate.lower()] = scores[i][0]
        labels = []
        for i, schema in enumerate(schemas):
            if schema is None:
                labels.append(self.fallback)
                continue
            own = rivals[schema.pronoun][schema.candidate.lower()]
            if len(rivals[schema.pronoun]) > 1:
                right = own == max(rivals[schema.pronoun].values())
            else:
                right = own > max(scores[i][1:], default=0.0)
            labels.append(LABELS[right])
        return labels

    def written(self, examples, predictions, features, outputs):
        """Returns each label, and the score of the sentence's candidate.

        There is no score where no pronoun is found.
        """
        scores = {}
        for feature, output in zip(features, outputs, strict=True):
            scores.setdefault(feature.example, float(output["score"]))
        return [
            {"label": label, "score": scores.get(i)}
            for i, label in enumerate(predictions)
        ]

    def get_config(self):
        return {**super().get_config(), "fallback": self.fallback}


def window(before, candidate, after, room):
    """Cuts a text to `room` tokens around a candidate, evenly on both sides.

    >>> window([1, 2, 3], [4], [5, 6, 7], 5)
    ([2, 3], [4], [5, 6])
    """
    candidate = candidate[:room]
    room -= len(candidate)
    count = min(len(before), max(room - len(after), room // 2))
    return before[len(before) - count :], candidate, after[: room - count]
