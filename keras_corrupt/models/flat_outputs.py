"""A pretraining model as exported files have it: they know no records."""

from keras_corrupt.encoders import TextModel


class FlatOutputs(TextModel):
    """Gives each array of a model's outputs a name, such as `mlm_logits`.

    Args:
        model: A `Pretrainer`, whose `call` returns a dict of records and arrays.
    """

    def __init__(self, model):
        super().__init__(name=model.name, dtype=model.dtype_policy)
        self.model = model
        self.built = True

    def call(self, inputs, training=False):
        return dict(named(self.model(inputs, training=training)))


def named(outputs, prefix=""):
    """Yields the names and arrays of a dict of records.

    >>> from keras_corrupt.corruption import Masking
    >>> dict(named({"states": 1, "masking": Masking(positions=2, weights=3)}))
    {'states': 1, 'masking_positions': 2, 'masking_weights': 3}
    """
    for name, value in outputs.items():
        if hasattr(value, "_asdict"):
            yield from named(value._asdict(), f"{prefix}{name}_")
        else:
            yield f"{prefix}{name}", value
