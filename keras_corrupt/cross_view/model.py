"""What the models of Cross-View Training share (Clark's thesis, 4.1.1, 4.2.2)."""

import contextlib

import keras
import numpy as np
from keras import ops

from keras_corrupt.cross_view import objective
from keras_corrupt.cross_view.mean_teacher import MeanTeacher
from keras_corrupt.cross_view.noise import adversarial_noise
from keras_corrupt.cross_view.tagging.prediction_module import PredictionModule
from keras_corrupt.cross_view.text.sentences import Sentences
from keras_corrupt.cross_view.views import BASELINES, VIEWS, check_views
from keras_corrupt.cross_view.weight import RisingWeight
from keras_corrupt.devices.guests import invites_guests
from keras_corrupt.devices.replicas import SeedGenerator


@invites_guests
class CrossViewModel(keras.Model):
    """A model of words' classes whose auxiliary modules learn from text without labels.

    A tagger, whose classes are its labels, unless a subclass says otherwise.

    Its inputs are a dict of arrays, for training with `labelled`, `[batch]`, 1 for
    sentences whose labels are known. Targets are the indices of the words' classes,
    `[batch, length]`, or -1.

    Presets have only the modules that predict: the auxiliary modules are of use in
    training alone.

    A subclass defines `networks`, what presets hold, and these methods. They get the
    model's `inputs`, and say by `training` whether dropout is active:

    - `encode(inputs, training, noise)` returns what the encoder makes of whole
      sentences, `encoded` for the others. `noise`, `[batch, length, embedding_width]`,
      is added to the embeddings, in units of their standard deviations.
    - `predict_from(encoded, training)` returns the primary module's logits.
    - `auxiliary_logits(inputs, encoded)` returns view -> logits of its module, in
      training.
    - `words(inputs)` returns `[batch, length]`, 1 where words stand, and 0 elsewhere.
    - `without_some_words(inputs)` returns the inputs with words removed, with
      probability `word_dropout`.
    - `batches(sentences, labels, batch_size, seed)` returns the `SentenceBatches` that
      the model reads.
    - `forward_flops(length, training)` counts encoder and primary module, one sentence,
      forward.

    Args:
        labels: The names of all labels.
        views: What auxiliary modules there are, of `known_views`. Also of `BASELINES`,
            where the primary module takes an auxiliary one's place. None for a model
            that learns from labelled sentences alone.
        label_smoothing: Label smoothing of known classes.
        word_dropout: The probability that `"word_dropout"` removes a word.
        vat_norm: The norm of the noise that `"vat"` adds to a sentence's embeddings, in
            units of their standard deviations.
        hard_targets: Whether to learn the primary module's likeliest classes, and not
            its probabilities (4.5).
        confidence: The probability from which on its likeliest class is learned (4.5).
        cross_view_weight: What the loss on unlabelled sentences counts, beside that on
            labelled ones; 1 in the thesis.
        cross_view_ramp: Updates on unlabelled sentences over which it rises to that.
    """

    known_views = VIEWS
    baselines = BASELINES
    #: What makes a split's examples what `batches` reads.
    compact = Sentences
    #: Whether auxiliary modules learn known labels, too, by gradients of their own. Not
    #: the thesis's: modules that know nothing yet pull at the states of all.
    modules_learn_labels = False

    def __init__(
        self,
        labels,
        views,
        label_smoothing,
        word_dropout=0.1,
        vat_norm=0.5,
        hard_targets=False,
        confidence=0.0,
        cross_view_weight=1.0,
        cross_view_ramp=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # ids
        check_views(views, self.known_views, self.baselines)
        if not labels or len(set(labels)) != len(labels):
            raise ValueError(f"`labels` must be different names; got {labels!r}.")
        check_rates(
            label_smoothing=label_smoothing,
            word_dropout=word_dropout,
            confidence=confidence,
        )
        if not vat_norm > 0:
            raise ValueError(f"`vat_norm` must be above 0; got {vat_norm!r}.")
        self.labels = list(labels)
        self.views = tuple(views)
        #: Those that have modules of their own, which `auxiliary` lists.
        self.module_views = [v for v in self.views if v in self.known_views]
        self.label_smoothing = label_smoothing
        self.word_dropout = word_dropout
        self.vat_norm = vat_norm
        self.hard_targets = hard_targets
        self.confidence = confidence
        self.cross_view_weight = RisingWeight(cross_view_weight, cross_view_ramp)
        #: The `MeanTeacher` that makes the targets, if any.
        self.teacher = None
        self.seed_generator = SeedGenerator()
        self.supervised_tracker = keras.metrics.Mean(name="supervised_loss")
        if self.views:
            self.cross_view_tracker = keras.metrics.Mean(name="cross_view_loss")

    @property
    def training_config(self):
        """The constructor arguments that decide how it learns, for `get_config`."""
        return {
            "views": list(self.views),
            "label_smoothing": self.label_smoothing,
            "word_dropout": self.word_dropout,
            "vat_norm": self.vat_norm,
            "hard_targets": self.hard_targets,
            "confidence": self.confidence,
            "cross_view_weight": self.cross_view_weight.weight,
            "cross_view_ramp": self.cross_view_weight.updates,
        }

    # === What a subclass can define otherwise ===

    def view_flops(self, length):
        """Counts what auxiliary modules need beside the encoder's states, forward."""
        return 0

    @property
    def student_passes(self):
        """How many passes of encoder and primary module the baselines take."""
        return len(self.views) - len(self.module_views)

    def teaching_flops(self, length):
        """Counts the targets; and `"vat"`'s noise, a pass forward and one back.

        That leaves the weights out.
        """
        return self.forward_flops(length) * (1 + 2 * ("vat" in self.views))

    @property
    def num_modules(self):
        """How many logits `auxiliary_logits` returns."""
        return len(self.module_views)

    @property
    def num_students(self):
        """How many logits learn from the targets: those, and the baselines'."""
        return self.num_modules + len(self.views) - len(self.module_views)

    def teach(self, inputs, noise=None):
        """Returns the primary module's logits without dropout, for targets."""
        return self.predict_from(self.encode(inputs, noise=noise))

    def random_noise(self, inputs):
        """Returns noise to add to the embeddings of words, and none to padding."""
        shape = (*ops.shape(self.words(inputs)), self.embedding_width)
        real = ops.cast(inputs["padding_mask"], "float32")[..., None]
        return keras.random.normal(shape, seed=self.seed_generator) * real

    # === What a tagger's classes are ===

    def num_classes(self, inputs):
        """Returns the number of a word's classes."""
        return len(self.labels)

    def classes_of(self, labels):
        """Returns the classes of all words, int `[words of all sentences]`.

        A label that the model does not have has no class, and adds nothing to the
        loss: -1.

        Args:
            labels: For each sentence a list of its words' labels.
        """
        index_of = {label: i for i, label in enumerate(self.labels)}
        return np.array([index_of.get(x, -1) for words in labels for x in words])

    def predicted(self, batches, output="logits", without=()):
        """Yields the number of each example of a pass, and an output of it.

        Args:
            batches: What `batches` returned.
            output: The name of the output.
            without: Names of inputs that are left out.
        """
        for number in range(len(batches)):
            inputs, _ = batches.batch(number)
            inputs = {name: x for name, x in inputs.items() if name not in without}
            values = np.array(self.predict_on_batch(inputs)[output])
            yield from zip(batches.rows(number), values, strict=False)

    # === Training ===

    def update_flops(self, length=1):
        """Counts an update, for one sentence, mean of both kinds of batches.

        Training costs three forward passes. The primary module learns, or computes in
        vain, on both kinds. `encoders/cost.py` has the rules.

        Args:
            length: Words, or pieces, in a sentence.
        """
        training = 3 * self.forward_flops(length, training=True)
        if not self.views:
            return training
        modules = 3 * sum(module.flops(length) for module in self.auxiliary)
        passes = self.view_flops(length)
        labelled = (passes + modules) * self.modules_learn_labels
        unlabelled = 3 * passes + modules + self.teaching_flops(length)
        unlabelled += training * self.student_passes
        return training + (labelled + unlabelled) / 2

    def learn_from_average(self, momentum):
        """Lets an average of the weights make the targets: see `MeanTeacher`."""
        self.teacher = MeanTeacher(self, momentum, name="teacher")

    def teaching(self):
        """Returns a context in which the model computes as the one that teaches."""
        if self.teacher is None:
            return contextlib.nullcontext()
        return self.teacher.in_place_of(self)

    def module(self, name, width, hidden_size):
        """Returns a new prediction module for states of a width."""
        module = PredictionModule(
            hidden_size, len(self.labels), dtype=self.dtype_policy, name=name
        )
        module.build((None, None, width))
        return module

    def call(self, inputs, training=False):
        """Returns a dict of what the modules make of sentences.

        Returns:
            `logits`, `[batch, length, classes]`, of the primary module; in training,
            where it has dropout, also `auxiliary`, a list of each view's logits, and
            `targets`, the primary module's probabilities without dropout. Without
            unlabelled sentences these are zeros. With `modules_learn_labels` there is
            `labelled_auxiliary`, a list of logits of labelled sentences.
        """
        encoded = self.encode(inputs, training)
        outputs = {"logits": self.predict_from(encoded, training)}
        if training and self.views:
            self.seed_generator.next()  # so that each step draws others
            self.cross_view_weight.count(inputs)
            if self.teacher is not None:
                self.teacher.update(self)
            learned = self.if_unlabelled(inputs, lambda: self.learned(inputs, encoded))
            outputs["targets"], *outputs["auxiliary"] = learned
            if self.modules_learn_labels and self.auxiliary:
                outputs["labelled_auxiliary"] = self.labelled_auxiliary(
                    inputs, encoded, outputs["logits"]
                )
        return outputs

    def labelled_auxiliary(self, inputs, encoded, logits):
        """Returns a list of what auxiliary modules make of labelled sentences.

        Zeros like the primary module's logits where there are none. Only the modules
        get a gradient of them.
        """
        trained = {id(v) for module in self.auxiliary for v in module.variables}
        values = [
            (v, v.value if id(v) in trained else ops.stop_gradient(v))
            for v in self.variables
        ]

        def compute():
            with keras.StatelessScope(values):
                fixed = keras.tree.map_structure(ops.stop_gradient, encoded)
                view_logits = self.auxiliary_logits(inputs, fixed)
            return [ops.cast(each, "float32") for each in view_logits.values()]

        def skip():
            zeros = ops.zeros_like(logits, dtype="float32")
            return [zeros] * self.num_modules

        return ops.cond(ops.any(inputs["labelled"] == 1), compute, skip)

    def if_unlabelled(self, inputs, compute):
        """Returns what a function does, or zeros without unlabelled sentences."""
        # JAX lets no change of a variable out of a branch: there, seeds start from
        # states that go on with the draws outside.
        values = [(v, ops.convert_to_tensor(v)) for v in self.variables]

        def branch():
            with keras.StatelessScope(values):
                return compute()

        def skip():
            return self.nothing_learned(inputs)

        return ops.cond(ops.any(inputs["labelled"] == 0), branch, skip)

    def nothing_learned(self, inputs):
        """Returns zeros of the shapes of what `learned` returns."""
        shape = (*ops.shape(self.words(inputs)), self.num_classes(inputs))
        return [ops.zeros(shape, "float32") for _ in range(1 + self.num_students)]

    def learned(self, inputs, encoded, whole=None):
        """Returns targets and each view's logits, all float32.

        `whole` is what `encode` makes of the inputs without dropout, if it is at hand.
        """
        with self.teaching():
            logits = self.predict_from(whole) if whole else self.teach(inputs)
        targets = ops.softmax(ops.cast(logits, "float32"))
        view_logits = self.auxiliary_logits(inputs, encoded)
        if "word_dropout" in self.views:
            view_logits["word_dropout"] = self.student(self.without_some_words(inputs))
        if "vat" in self.views:
            noise = self.adversarial_noise(inputs, targets)
            view_logits["vat"] = self.student(inputs, noise)
        return [
            targets,
            *(ops.cast(view_logits[view], "float32") for view in self.views),
        ]

    def student(self, inputs, noise=None):
        """Returns the primary module's logits, with dropout."""
        return self.predict_from(self.encode(inputs, True, noise), True)

    def adversarial_noise(self, inputs, targets):
        """Returns the noise that changes predictions most, those without dropout.

        The norm is taken over all of a sentence's embeddings.
        """
        words = ops.cast(self.words(inputs), "float32")

        def divergence(noise):
            logits = self.teach(inputs, noise)
            # The entropy of the targets does not depend on the noise.
            return ops.sum(objective.cross_entropy(targets, logits) * words)

        start = self.random_noise(inputs)
        return adversarial_noise(divergence, start, self.vat_norm)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """The mean over labelled words, plus the mean over unlabelled ones."""
        loss, words = self.supervised_loss(x, y, y_pred)
        self.supervised_tracker.update_state(loss, words)
        if "auxiliary" in y_pred:
            cross_view, words = self.cross_view_loss(x, y_pred)
            self.cross_view_tracker.update_state(cross_view, words)
            loss = loss + self.cross_view_weight.value() * cross_view
        return loss + self.labelled_auxiliary_loss(x, y, y_pred)

    def supervised_loss(self, inputs, classes, outputs):
        """Returns the mean over labelled words, and how many these are.

        `classes` are the targets, `outputs` what `call` returned.
        """
        words = self.words_where(inputs, 1) * ops.cast(classes >= 0, "float32")
        logits, smoothing = outputs["logits"], self.label_smoothing
        loss = objective.supervised_loss(logits, classes, words, smoothing)
        return loss, ops.sum(words)

    def labelled_auxiliary_loss(self, inputs, classes, outputs):
        """Returns the sum of the losses of auxiliary modules on labelled words."""
        return sum(
            self.supervised_loss(inputs, classes, {"logits": logits})[0]
            for logits in outputs.get("labelled_auxiliary", [])
        )

    def cross_view_loss(self, inputs, outputs):
        """Returns the mean over unlabelled words, and how many these are."""
        targets = outputs["targets"]
        sure = ops.max(targets, axis=-1) >= self.confidence
        words = self.words_where(inputs, 0) * ops.cast(sure, "float32")
        if self.hard_targets:
            likeliest = ops.argmax(targets, axis=-1)
            targets = ops.one_hot(likeliest, self.num_classes(inputs))
        loss = objective.cross_view_loss(targets, outputs["auxiliary"], words)
        return loss, ops.sum(words)

    def words_where(self, inputs, labelled):
        """Returns float32 1 for words of sentences with that `labelled`, else 0."""
        words = ops.cast(self.words(inputs), "float32")
        sentences = ops.cast(inputs["labelled"] == labelled, "float32")
        return ops.transpose(ops.transpose(words) * sentences)


def check_rates(**rates):
    """Raises a `ValueError` for a rate that is none."""
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ValueError(
                f"`{name}` must be at least 0 and less than 1; got {rate!r}."
            )
