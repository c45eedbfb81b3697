"""The weight of the loss without labels."""

import keras
from keras import ops


class RisingWeight(keras.layers.Layer):
    """The weight of the loss on sentences, or images, without labels.

    Not the thesis's, where it is 1: modules that know little at first pull less at the
    states that all share, as do the targets of Laine and Aila (2017, 2.1).

    Args:
        weight: Float. The weight in the end.
        updates: Int. Updates without labels over which it rises linearly to that; 0 for
            the same weight throughout.

    Raises:
        ValueError: One of them is none.
    """

    def __init__(self, weight=1.0, updates=0, **kwargs):
        super().__init__(trainable=False, **kwargs)
        if not weight > 0 or not updates >= 0:
            raise ValueError(
                "`cross_view_weight` must be above 0, `cross_view_ramp` 0 or more; got "
                f"{weight!r}, {updates!r}."
            )
        self.weight, self.updates = weight, updates
        if updates:
            self.seen = self.add_weight((), "zeros", dtype="int32", name="seen")
        self.built = True

    def count(self, inputs):
        """Counts an update, if its batch has inputs without labels."""
        if self.updates:
            unlabelled = ops.any(inputs["labelled"] == 0)
            self.seen.assign(self.seen + ops.cast(unlabelled, "int32"))

    def value(self):
        """Returns the weight at the update that was counted last."""
        if not self.updates:
            return self.weight
        share = ops.cast(self.seen, "float32") / self.updates
        return self.weight * ops.minimum(share, 1.0)
