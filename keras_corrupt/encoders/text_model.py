"""What all models here read: token ids, in the forms in which people have them."""

import os
from collections.abc import Mapping

import keras
import numpy as np
from keras import ops

from keras_corrupt import tokenizers
from keras_corrupt.devices.batches import Batches, fed
from keras_corrupt.devices.guests import invites_guests
from keras_corrupt.devices.many_updates import makes_many, many_updates
from keras_corrupt.encoders.embeddings import TextEmbeddings
from keras_corrupt.encoders.input_limits import (
    UNLIMITED,
    InputLimits,
    is_integers,
    type_name,
)
from keras_corrupt.encoders.legacy_weights import check_format
from keras_corrupt.tokenizers.tokenizer import DOCUMENT_FILE

#: The arrays of the contract, all int32 `[batch, length]`.
NAMES = ("token_ids", "segment_ids", "padding_mask")
#: An array that inputs have beside these where a row holds several texts, one after the
#: other: the number of a token's text in its row, from 1 on; 0 for padding.
TEXT_IDS = "text_ids"

_FORMAT = (
    "Text is read as integer token ids `[batch, length]`: an array, or a dict with "
    "`token_ids` and, if they are known, `segment_ids` and `padding_mask` (1 for "
    "tokens, 0 for padding) of the same shape. Raw strings become that by "
    "`tokenizer.pack(texts, length)`, or with labels, for a fine-tuned model, by "
    "`model.batches(model.features(texts, labels), batch_size)`; ragged ids do by "
    "`padded_batch`."
)


@invites_guests
class TextModel(keras.Model):
    """A `keras.Model` that reads token ids.

    `call` takes what `text_inputs` takes, and passes it through that first.
    """

    #: The token id that is padding where the inputs have no `padding_mask`.
    padding_id = 0
    #: What the model needs in the inputs' dict beside the arrays of the contract.
    further_inputs = ()
    #: Whether the model makes one vector, or one answer, of each row.
    one_text_a_row = False

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        # `keras.Input((None,))` is of floats, and bfloat16 has no id above 256.
        self.autocast = False

    def text_inputs(self, inputs):
        """Returns the model's inputs as its networks read them; see `text_inputs`."""
        inputs = text_inputs(inputs, self.padding_id)
        if self.one_text_a_row and TEXT_IDS in inputs:
            raise ValueError(
                f"{type(self).__name__} reads one text a row, and `text_ids` says that "
                "rows hold several. Put each text into a row of its own."
            )
        missing = [name for name in self.further_inputs if name not in inputs]
        if missing:
            raise ValueError(
                f"{type(self).__name__} reads {', '.join(missing)} beside `token_ids`. "
                "Make its inputs with `model.batches(model.features(examples), size)`."
            )
        return inputs

    @property
    def number_bytes(self):
        """Bytes of a number that the layers compute: 2 in mixed precision, else 4."""
        return 2 if self.compute_dtype in ("bfloat16", "float16") else 4

    @property
    def input_limits(self):
        """The `InputLimits` of what all its networks read."""
        tables = [t for t in self._flatten_layers() if isinstance(t, TextEmbeddings)]
        sizes = zip(UNLIMITED, *(t.input_limits for t in tables), strict=True)
        return InputLimits(*map(min, sizes))

    def checked_targets(self, targets):
        """Returns the array of targets that `fit` was given as the model learns it.

        Raises:
            ValueError: It cannot learn them.
        """
        return targets

    def fit(self, x=None, y=None, *args, validation_data=None, **kwargs):
        """Trains: see `keras.Model.fit`.

        Args:
            x: What `text_inputs` takes, or batches of it as Keras takes them. See
                `InputLimits.checked`.
            y: Targets of arrays: see `checked_targets`.
            args: See there.
            validation_data: See there.
            kwargs: See there.
        """
        if getattr(self, "loss", None) is not None:
            raise ValueError(
                f"{type(self).__name__} has a loss of its own: compile it without "
                "`loss`. The weights of its terms, or of its labels, are arguments of "
                "the model, and `fit` takes `sample_weight`. For another loss, "
                "override `compute_loss`."
            )
        check_arrays(x)
        y = self._targets(y)
        if isinstance(validation_data, (tuple, list)) and len(validation_data) > 1:
            inputs, targets, *weights = validation_data
            validation_data = (inputs, self._targets(targets), *weights)
        x, validation_data = map(self.input_limits.checked, (x, validation_data))
        if isinstance(x, Batches):
            kwargs["shuffle"] = False  # they have an order
        with fed(x) as x, fed(validation_data) as validation_data:
            return super().fit(x, y, *args, validation_data=validation_data, **kwargs)

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """Computes loss and metrics: see `keras.Model.evaluate`."""
        check_arrays(x)
        y = self._targets(y)
        with fed(self.input_limits.checked(x)) as x:
            return super().evaluate(x, y, *args, **kwargs)

    def _targets(self, y):
        return y if y is None or isinstance(y, Mapping) else self.checked_targets(y)

    def predict(self, x, *args, **kwargs):
        """Runs the model: see `keras.Model.predict`."""
        check_arrays(x)
        with fed(self.input_limits.checked(x)) as x:
            return super().predict(x, *args, **kwargs)

    def _purge_model_variables(self, **_):
        """Leaves weights in their variables on JAX, or a step that fails loses them.

        Keras takes them away to save memory, which the step reuses anyway.
        """

    def make_train_function(self, force=False):
        made = self.train_function is not None and not force
        super().make_train_function(force)
        if not made and makes_many(self):
            self.train_function = many_updates(self)

    # === Files ===

    def save_assets(self, directory):
        """Puts the tokenizer into a `.keras` file; presets have it beside the model."""
        tokenizer = getattr(self, "tokenizer", None)
        if tokenizer is not None:
            tokenizer.save(directory)

    def load_assets(self, directory):
        """Takes the tokenizer out of a `.keras` file."""
        if directory and os.path.exists(os.path.join(directory, DOCUMENT_FILE)):
            tokenizer = tokenizers.load(directory)
            if tokenizer.vocabulary_size > self.vocabulary_size:
                raise ValueError(
                    f"The file's tokenizer has {tokenizer.vocabulary_size} tokens, "
                    f"more than the model's {self.vocabulary_size}: it is not "
                    "the model's own."
                )
            self.tokenizer = tokenizer

    def load_weights(self, filepath, *args, **kwargs):
        """Loads weights: see `keras.Model.load_weights`."""
        check_format(filepath)
        super().load_weights(filepath, *args, **kwargs)

    def save(self, filepath, *args, **kwargs):
        """Writes a `.keras` file: see `keras.Model.save`."""
        if str(filepath).endswith((".h5", ".hdf5")):
            raise ValueError(
                f"Keras could not load the model from {filepath} again. Save it to a "
                "`.keras` file, or its weights with `save_weights`."
            )
        self.refuse_quantized()
        super().save(filepath, *args, **kwargs)

    def refuse_quantized(self):
        """Raises a `ValueError` if `quantize` changed layers: no file keeps them."""
        if self._has_layer_with("quantization_mode"):
            raise ValueError(
                "A quantized model cannot be saved. Save it before `quantize`, and "
                "quantize what you load."
            )

    def refuse_lora(self):
        """Raises a `ValueError` if a layer has LoRA: presets have no place for it."""
        if self._has_layer_with("lora_enabled"):
            raise ValueError(
                "A preset has no place for LoRA. Save the model to a `.keras` file, "
                "which merges LoRA into the weights; what you load can be a preset."
            )

    def _has_layer_with(self, attribute):
        return any(getattr(layer, attribute, None) for layer in self._flatten_layers())

    def export(
        self,
        filepath,
        format="tf_saved_model",
        verbose=None,
        input_signature=None,
        **kwargs,
    ):
        """Exports the model: see `keras.Model.export`.

        Args:
            filepath: Where to.
            format: See there.
            verbose: See there.
            input_signature: By default a dict of the arrays that the model reads, of
                any batch size and length.
            kwargs: See there.
        """
        if input_signature is None:
            names = (*NAMES, *self.further_inputs)
            input_signature = [
                {n: keras.InputSpec("int32", (None, None), name=n) for n in names}
            ]
        return super().export(filepath, format, verbose, input_signature, **kwargs)


def text_inputs(inputs, padding_id=0):
    """Makes the inputs of every network of what people have.

    Args:
        inputs: Token ids, integers `[batch, length]`, or floats as `keras.Input` makes
            them. Or a dict with `token_ids` and, of the same shape, `segment_ids` and
            `padding_mask`: without them all is one segment, and tokens are padding
            where they are `padding_id`. With `text_ids`, `TEXT_IDS`, rows hold several
            texts. What else the dict has is kept.
        padding_id: The token id of padding.

    Returns:
        A dict of int32 `[batch, length]`: `token_ids`, `segment_ids` and
        `padding_mask` (1 for tokens, 0 for padding), and of what else there was.

    Raises:
        ValueError: It is something else.

    Example:

    >>> import numpy as np
    >>> inputs = text_inputs(np.array([[2, 7, 3, 0]]))
    >>> np.array(inputs["padding_mask"]).tolist()
    [[1, 1, 1, 0]]
    """
    check(inputs)
    named = inputs if isinstance(inputs, Mapping) else {"token_ids": inputs}
    arrays = {
        name: ops.cast(array, "int32")
        if name in (*NAMES, TEXT_IDS) or type_name(array) == "int64"
        else array
        for name, array in named.items()
    }
    token_ids = arrays["token_ids"]
    if "segment_ids" not in arrays:
        arrays["segment_ids"] = ops.zeros_like(token_ids)
    if "padding_mask" not in arrays:
        arrays["padding_mask"] = ops.cast(token_ids != padding_id, "int32")
    return arrays


def check_arrays(x):
    """Raises a `ValueError` for arrays that `text_inputs` does not take."""
    if isinstance(x, (Mapping, np.ndarray, list, tuple, str)):
        check(x)


def check(inputs):
    """Raises a `ValueError` unless it is something that `text_inputs` takes."""
    named = inputs if isinstance(inputs, Mapping) else {"token_ids": inputs}
    token_ids = named.get("token_ids")
    for name in (*NAMES, TEXT_IDS):
        array = named.get(name, token_ids)
        if not is_integers(array) or not _may_equal(array.shape, token_ids.shape):
            raise ValueError(f"{_FORMAT} Got {_described(inputs)}.")


def _may_equal(shape, other):
    """Returns whether two shapes are equal as far as they are known."""
    pairs = zip(shape, other, strict=True)
    return all(a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int))


def _described(inputs):
    if isinstance(inputs, Mapping):
        entries = (f"{name} ({_described(array)})" for name, array in inputs.items())
        return f"a dict of {', '.join(entries)}"
    if hasattr(inputs, "shape") and hasattr(inputs, "dtype"):
        return f"{type_name(inputs)} {inputs.shape}"
    return f"a {type(inputs).__name__}"
