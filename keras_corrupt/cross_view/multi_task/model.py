"""Cross-View Training of several tasks at once (Clark's thesis, 4.1.2).

The tasks have one encoder, and each has modules of its own. A labelled batch is of one
task. On an unlabelled one the primary modules of all tasks predict, and all auxiliary
ones learn from that.
"""

import keras
from keras import ops

from keras_corrupt.devices.guests import invites_guests

#: The number of a sentence's task where the sentence is every task's.
EVERY_TASK = -1
#: What `labelled` is for a part where a sentence is another task's.
NOT_MINE = -1


@invites_guests
class CrossViewMultiTask(keras.Model):
    """Models of words that have one encoder, trained together.

    Its inputs are its parts', and `task`, `[batch]`, the number of the task that a
    sentence is of, or `EVERY_TASK`. Targets are the classes of that task. Each part is
    a model by itself, which predicts and is saved.

    Args:
        parts: Name -> `WordModel`, all made with the first one's `encoder` and
            vocabulary.
    """

    def __init__(self, parts, **kwargs):
        super().__init__(**kwargs)
        self.autocast = False  # ids
        encoders = {id(part.encoder) for part in parts.values()}
        if len(parts) < 2 or len(encoders) > 1:
            raise ValueError(
                "`parts` must be two models or more with one encoder; got "
                f"{len(parts)} with {len(encoders)}."
            )
        self.names = list(parts)
        self.parts = list(parts.values())
        self.encoder = self.parts[0].encoder
        self.cross_view_weight = self.parts[0].cross_view_weight
        self.supervised_tracker = keras.metrics.Mean(name="supervised_loss")
        if self.learns_from_text:
            self.cross_view_tracker = keras.metrics.Mean(name="cross_view_loss")
        self.built = True

    @property
    def learns_from_text(self):
        """Whether there are auxiliary modules."""
        return any(part.views for part in self.parts)

    def call(self, inputs, training=False):
        """Returns a list of what each part returns; see `CrossViewModel.call`.

        In training only the parts whose labels a batch has predict with dropout; the
        logits of the others are zeros.
        """
        layers = self.parts[0].states(inputs, training)
        own = []
        for number, part in enumerate(self.parts):
            part_inputs = self.inputs_of(number, inputs)
            own.append((part, part_inputs, part.views_of(layers, part_inputs)))
        results = [{"logits": self.logits(*each, training)} for each in own]
        if training and self.learns_from_text:
            self.cross_view_weight.count(inputs)
            learned = self.learned(inputs, own)
            for outputs, (targets, *auxiliary) in zip(results, learned, strict=True):
                outputs |= {"targets": targets, "auxiliary": auxiliary}
            for outputs, (part, *each) in zip(results, own, strict=True):
                if part.modules_learn_labels and part.auxiliary:
                    outputs["labelled_auxiliary"] = part.labelled_auxiliary(
                        *each, outputs["logits"]
                    )
        return results

    def inputs_of(self, number, inputs):
        """Returns the inputs of a part, with `NOT_MINE` for other tasks' sentences."""
        mine = ops.logical_or(inputs["task"] == number, inputs["task"] == EVERY_TASK)
        return {**inputs, "labelled": ops.where(mine, inputs["labelled"], NOT_MINE)}

    def logits(self, part, inputs, encoded, training):
        """Returns a primary module's logits, float32, if the batch asks for them."""

        def predict():
            return ops.cast(part.predict_from(encoded, training), "float32")

        if not training:
            return predict()
        any_labelled = ops.any(inputs["labelled"] == 1)
        return ops.cond(any_labelled, predict, lambda: part.nothing_learned(inputs)[0])

    def learned(self, inputs, own):
        """Returns each part's targets and auxiliary logits; zeros without text.

        `own` are each part, its inputs, and the views that its modules have.
        """

        def compute():
            layers = self.encoder(inputs)  # without dropout, for all tasks
            return [
                part.learned(part_inputs, views, part.views_of(layers, part_inputs))
                for part, part_inputs, views in own
            ]

        def skip():
            return [part.nothing_learned(part_inputs) for part, part_inputs, _ in own]

        return ops.cond(ops.any(inputs["labelled"] == 0), compute, skip)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """The sum of the parts' losses, of which a labelled batch has one."""
        total = 0.0
        for number, (part, outputs) in enumerate(zip(self.parts, y_pred, strict=True)):
            inputs = self.inputs_of(number, x)
            supervised, words = part.supervised_loss(inputs, y, outputs)
            self.supervised_tracker.update_state(supervised, words)
            total = total + supervised
            if "auxiliary" in outputs:
                cross_view, words = part.cross_view_loss(inputs, outputs)
                self.cross_view_tracker.update_state(cross_view, words)
                total = total + self.cross_view_weight.value() * cross_view
                total = total + part.labelled_auxiliary_loss(inputs, y, outputs)
        return total

    # === What a run asks for ===

    @property
    def networks(self):
        """What predicts."""
        primary = zip(self.names, self.parts, strict=True)
        return {"encoder": self.encoder, **{n: part.primary for n, part in primary}}

    @property
    def auxiliary(self):
        """The auxiliary modules of all tasks."""
        return [module for part in self.parts for module in part.auxiliary]

    def update_flops(self, length):
        """Counts an update, for one sentence, mean of both kinds of batches.

        On text without labels the encoder runs once for the targets of all tasks, and
        once for all that learn from these. See `CrossViewModel.update_flops`.
        """
        encoder = self.encoder.flops(length, self.parts[0].vocabulary.WIDTH)
        primary = sum(part.primary.flops(length) for part in self.parts)
        labelled = 3 * (encoder + primary / len(self.parts))
        if not self.learns_from_text:
            return labelled
        modules = 3 * sum(module.flops(length) for module in self.auxiliary)
        if self.parts[0].modules_learn_labels:
            labelled += modules / len(self.parts)
        return (labelled + 4 * encoder + primary + modules) / 2
