"""A class told by the word that a language model expects in a prompt (LM-BFF).

Gao et al., 2021, equation (1): with M(y) the word of the class y,

    p(y | x) = exp(w_M(y) . h_[MASK]) / sum over y' of exp(w_M(y') . h_[MASK])

COCO-LM's table 4 fine-tunes so with 16 examples of each class.
"""

import functools
import zlib
from collections import defaultdict

import keras
import numpy as np
from keras import ops
from scipy.special import softmax

from keras_corrupt.downstream.answering import labelled
from keras_corrupt.downstream.array_targets import class_numbers, class_targets
from keras_corrupt.downstream.batches import Feature
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.downstream.prompts import Template, demonstration_sets
from keras_corrupt.downstream.soft_targets import cross_entropy
from keras_corrupt.heads import VocabularyHead
from keras_corrupt.tokenizers.texts import text_tuples


@keras.saving.register_keras_serializable(package="keras_corrupt")
class PromptClassifier(DownstreamModel):
    """Classifies texts or pairs by filling a word into a prompt.

    The head is the vocabulary head that the encoder was pretrained with, so that few
    examples suffice, and no weight is new. Systems without one (ELECTRA's
    discriminator) cannot start here.

    With demonstrations, prompts of training examples with their word follow a prompt,
    one of each class. Each example is read with `num_contexts` draws of them, in
    training as in prediction, which averages the probabilities.

    Args:
        template: A text with `{first}`, for pairs `{second}`, and `[MASK]`.
        label_words: Dict of each class's name to its word, one token each.
        demonstrations: Pairs of an example and its label to draw from; none if empty.
        num_contexts: How many draws of demonstrations each example is read with.
        transform: Whether the vocabulary head has BERT's transform.
        kwargs: Arguments of `DownstreamModel`.

    Raises:
        ValueError: The words are not different tokens of the vocabulary, the template
            lacks a slot, or a demonstration's label has no word.

    Example:

    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> words = ["fun", "dull", "it", "was", "great", "terrible", "."]
    >>> classifier = PromptClassifier.from_preset(
    ...     "tiny", tokenizer=WordPieceTokenizer([*SPECIAL_TOKENS, *words]),
    ...     template="{first} It was [MASK] .",
    ...     label_words={"positive": "great", "negative": "terrible"})
    >>> classifier.probabilities(["Fun.", "Dull."]).shape
    (2, 2)
    """

    head_arguments = ("template", "label_words", "demonstrations", "num_contexts")
    further_inputs = ("mask_place",)

    def __init__(
        self,
        encoder,
        tokenizer,
        template,
        label_words,
        demonstrations=(),
        num_contexts=1,
        transform=True,
        **kwargs,
    ):
        super().__init__(encoder, tokenizer, **kwargs)
        words = list(label_words.values())
        if len(words) < 2 or len({*words}) < len(words):
            raise ValueError(
                "`label_words` must give two classes or more each a word of its own; "
                f"got {label_words!r}."
            )
        for example, label in demonstrations:
            if label not in label_words:
                raise ValueError(
                    f"`demonstrations` has the label {label!r} ({example!r}), which "
                    f"`label_words` lacks: {label_words!r}."
                )
        if num_contexts < 1 or num_contexts > 1 and not demonstrations:
            raise ValueError(
                "`num_contexts` must be 1 or more, and 1 without `demonstrations`; "
                f"got {num_contexts!r}."
            )
        self.template = template
        self.label_words = dict(label_words)
        self.demonstrations = [list(pair) for pair in demonstrations]
        self.num_contexts = num_contexts
        self.transform = transform
        if tokenizer is not None:
            _ = self.word_ids  # errors come before any work
        self.head = VocabularyHead(
            self.encoder, transform=transform, dtype=self.dtype_policy, name="head"
        )
        self.built = True

    @property
    def labels(self):
        """The classes' names."""
        return list(self.label_words)

    @functools.cached_property
    def prompt(self):
        """The `Template`."""
        return Template(self.template, self.tokenizer)

    @functools.cached_property
    def word_ids(self):
        """The token of each class."""
        return [self.prompt.word_id(word) for word in self.label_words.values()]

    @classmethod
    def arguments_of(cls, start):
        """The pretrained head's kind; see `DownstreamModel.arguments_of`."""
        head = start.vocabulary_head
        if head is None:
            raise ValueError(
                f"The encoder of this {type(start).__name__} was not pretrained to "
                "predict words and has no vocabulary head for prompts: take a "
                "MaskedLM or a CocoLM, or fine-tune a TextClassifier."
            )
        return {"transform": head.transform is not None}

    def take_head(self, start):
        """Takes the vocabulary head, of a model of any class."""
        self.head.set_weights(start.vocabulary_head.get_weights())

    @property
    def input_limits(self):
        return super().input_limits._replace(num_labels=len(self.labels))

    @property
    def vocabulary_head(self):
        """The head."""
        return self.head

    def features(self, examples, labels=None):
        """Makes prompts; see `DownstreamModel.features`.

        An example has `num_contexts` features. A training example that is among the
        demonstrations is not shown itself.
        """
        prompt, tokenizer = self.prompt, self.tokenizer
        examples = self._checked(examples, "examples")
        shown = [example for example, _ in self.demonstrations]
        shown = self._checked(shown, "demonstrations")
        shown_labels = [label for _, label in self.demonstrations]
        words = dict(zip(self.labels, self.word_ids, strict=True))
        texts, shown_texts = prompt.encode(examples), prompt.encode(shown)
        own = {} if labels is None else {e: i for i, e in enumerate(shown)}
        features = []
        for i, example in enumerate(examples):
            target = {} if labels is None else self.target(labels[i])
            # The text decides, not its place: a file is read in parts.
            rng = np.random.default_rng(zlib.crc32("\0".join(example).encode()))
            for chosen in demonstration_sets(
                shown_labels, self.num_contexts, own.get(example), rng
            ):
                room = (self.max_length - 1) // (1 + len(chosen)) - 1
                token_ids = [tokenizer.classify_id]
                token_ids += prompt.fill(texts[i], room, tokenizer.mask_id)
                place = token_ids.index(tokenizer.mask_id)
                for index in chosen:
                    word = words[shown_labels[index]]
                    token_ids.append(tokenizer.separate_id)
                    token_ids += prompt.fill(shown_texts[index], room, word)
                token_ids.append(tokenizer.separate_id)
                inputs = {
                    "token_ids": np.array(token_ids, "int32"),
                    "segment_ids": np.zeros(len(token_ids), "int32"),
                    "mask_place": (np.arange(len(token_ids)) == place).astype("int32"),
                }
                features.append(Feature(inputs, target, i))
        return features

    def _checked(self, examples, name):
        """Returns examples as tuples of as many texts as the template has slots."""
        num_texts = self.prompt.num_texts
        pairs = text_tuples(examples, name)
        for i, pair in enumerate(pairs):
            if len(pair) != num_texts:
                raise ValueError(
                    f"`template` {self.template!r} takes {num_texts} texts; "
                    f"`{name}[{i}]` is {examples[i]!r}."
                )
        return pairs

    def target(self, label):
        """Returns the targets of a label: its index."""
        if label not in self.label_words:
            raise ValueError(f"Unknown label {label!r}; the model's are {self.labels}.")
        return {"label": self.labels.index(label)}

    def head_outputs(self, hidden, inputs, training=False):
        place = ops.argmax(inputs["mask_place"], axis=1)[:, None]
        logits = self.head(hidden, ops.cast(place, "int32"))[:, 0]
        return {"logits": ops.take(logits, np.array(self.word_ids), axis=1)}

    def sequence_losses(self, outputs, targets):
        """Cross-entropy over the classes' words."""
        return cross_entropy(targets["label"], outputs["logits"])

    def soft_targets(self, features, outputs):
        return [{"label": softmax(output["logits"], axis=-1)} for output in outputs]

    def decode(self, examples, features, outputs):
        """Returns a label for each example."""
        chances = self._averaged(features, outputs)
        return [self.labels[i] for i in chances.argmax(axis=1)]

    def checked_targets(self, targets):
        return class_numbers(targets, self.labels)

    def targets_of(self, array):
        return class_targets(array)

    @property
    def row_format(self):
        """The columns are those that the template has slots for."""
        columns = super().row_format["columns"]
        return {"columns": columns[: self.prompt.num_texts]}

    def written(self, examples, predictions, features, outputs):
        """Returns each label with all labels' probabilities."""
        return labelled(predictions, self.labels, self._averaged(features, outputs))

    def probabilities(self, examples, batch_size=64):
        """Returns the probability of each class, float32 `[examples, classes]`."""
        features = self.features(examples)
        return self._averaged(features, self.outputs(features, batch_size))

    def _averaged(self, features, outputs):
        """Returns the mean over contexts of the classes' probabilities."""
        by_example = defaultdict(list)
        for feature, output in zip(features, outputs, strict=True):
            by_example[feature.example].append(softmax(output["logits"], axis=-1))
        return np.stack(
            [np.mean(by_example[i], axis=0) for i in range(len(by_example))]
        )

    def get_config(self):
        return {
            **super().get_config(),
            "template": self.template,
            "label_words": self.label_words,
            "demonstrations": self.demonstrations,
            "num_contexts": self.num_contexts,
            "transform": self.transform,
        }
