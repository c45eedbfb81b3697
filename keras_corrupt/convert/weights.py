"""What formats share: the weights of our networks under other names.

A format is a table from the layers of a network of ours, as `named_weights` names them,
to its own names. `{}` in both stands for the number of a layer of the Transformer.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import keras
import numpy as np

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.presets.named_variables import named_weights

POSITIONS = "embeddings/position/embeddings"
#: Parts of the embeddings that networks may share -> their weights.
PARTS = {
    "token": ["embeddings/token/embeddings"],
    "position": [POSITIONS],
    "segment": ["embeddings/segment/embeddings"],
    "norm": ["embeddings/norm/gamma", "embeddings/norm/beta"],
}
_PYTORCH_KINDS = {
    **{"kernel": "weight", "bias": "bias", "embeddings": "weight"},
    **{"gamma": "weight", "beta": "bias"},
}


#: What other libraries' BERT and ELECTRA have, and no other.
_OF_BERT = {
    "attention": "bidirectional",
    "relative_positions": None,
    "positions": "learned",
    "norm": "post",
    "feed_forward": "gelu",
    "use_bias": True,
    "local_window": None,
}


class Weights(NamedTuple):
    """The arrays of a file, which are not read before they are asked for.

    Attributes:
        path: The file, for errors.
        shapes: Name -> shape.
        read: A function of a name that returns the array, NumPy.
    """

    path: str
    shapes: Mapping
    read: Callable

    @property
    def size(self):
        """How many arrays there are, and how many numbers they have."""
        numbers = sum(int(np.prod(s, dtype=object)) for s in self.shapes.values())
        return len(self.shapes), numbers


def unchanged(name, array):
    """Returns the array."""
    return array


def transposed(name, array):
    """Returns a matrix the other way round, as PyTorch has it, if it is a layer's."""
    return array.T if name.endswith("kernel") else array


def split_heads(num_heads):
    """Returns a `to_theirs` that gives attention's weights an axis of heads."""

    def to_theirs(name, array):
        if re.search(r"/attention/(query|key|value)/", name):
            return array.reshape(*array.shape[:-1], num_heads, -1)
        if name.endswith("/attention/output_projection/kernel"):
            return array.reshape(num_heads, -1, array.shape[-1])
        return array

    return to_theirs


class Format(NamedTuple):
    """How a format writes the weights of a network.

    Attributes:
        table: Our layer, or one of our weights -> their name.
        kinds: Our `kernel`, `bias`, `gamma`, `beta` and `embeddings` -> theirs.
        separator: What stands before it.
        to_theirs: A function of our name and an array that gives it their shape.
        to_ours: The other way round, up to `reshape`.
        resolve: A function of their name that returns the one that a file has for it.
    """

    table: Mapping
    kinds: Mapping
    separator: str = "/"
    to_theirs: Callable = unchanged
    to_ours: Callable = unchanged
    resolve: Callable = str

    def name(self, ours):
        """Returns their name of one of our weights.

        Raises:
            ValueError: The format has no place for it.
        """
        layer, _, kind = ours.rpartition("/")
        numbers = re.findall(r"layers_(\d+)/", ours)
        any_layer = re.sub(r"layers_\d+/", "layers_{}/", layer)
        if ours in self.table:
            theirs = self.table[ours]
        elif template := self.table.get(layer) or self.table.get(any_layer):
            theirs = template.format(*numbers) + self.separator + self.kinds[kind]
        else:
            raise ValueError(f"the format has no place for {ours}")
        return self.resolve(theirs)


def pytorch_format(table, to_ours=transposed):
    """Returns the `Format` of a table of PyTorch's names."""
    return Format(table, _PYTORCH_KINDS, ".", transposed, to_ours)


def exported_weights(network, form):
    """Returns a network's weights as a format has them: name -> array.

    Args:
        network: The network, or another layer.
        form: A `Format`.
    """
    return {
        form.name(name): np.ascontiguousarray(
            form.to_theirs(name, keras.ops.convert_to_numpy(variable))
        )
        for name, variable in named_weights(network).items()
    }


def assign_weights(weights, *targets, unused=None):
    """Gives networks the weights of a file.

    Names and shapes are compared before anything is read. A position table that is
    longer than the network's is cut.

    Args:
        weights: `Weights`.
        targets: Pairs of a network and its `Format`.
        unused: A regular expression of names that nothing of ours takes.

    Raises:
        ValueError: A weight is missing, of another shape, left over, or not finite.
    """
    targeted, problems = [], []
    for network, form in targets:
        for name, variable in named_weights(network).items():
            theirs = form.name(name)
            like = np.broadcast_to(np.float32(0), variable.shape)
            shape = form.to_theirs(name, like).shape
            stored = weights.shapes.get(theirs)
            targeted.append((name, variable, theirs, form))
            if stored is None:
                problems.append(f"{theirs}, {list(shape)}, is missing")
            elif not _fits(name, tuple(stored), shape):
                problems.append(f"{theirs} is {list(stored)}, not {list(shape)}")
    used = {theirs for _, _, theirs, _ in targeted}
    problems += [
        f"{name} is not known"
        for name in weights.shapes
        if name not in used and not (unused and re.fullmatch(unused, name))
    ]
    if problems:
        more = f"; and {len(problems) - 4} more" if len(problems) > 4 else ""
        raise ValueError(f"{weights.path}: {'; '.join(problems[:4])}{more}.")
    assign(weights, targeted)


def assign(weights, targeted):
    """Gives variables the arrays of a file.

    Args:
        weights: `Weights`.
        targeted: For each variable our name, itself, their name and the `Format`.

    Raises:
        ValueError: An array is not finite, or a variable has two that differ.
    """
    assigned = {}
    for name, variable, theirs, form in targeted:
        array = weights.read(theirs)
        if not keras.backend.is_float_dtype(
            keras.backend.standardize_dtype(array.dtype)
        ):
            raise ValueError(
                f"{weights.path}: {theirs} holds {array.dtype}, no floats."
            )
        array = np.asarray(form.to_ours(name, array), "float32")
        if name.endswith(POSITIONS):
            array = array[: variable.shape[0]]
        if not np.isfinite(array).all():
            raise ValueError(f"{weights.path}: {theirs} has NaN or infinity.")
        array = array.reshape(variable.shape)
        other, before = assigned.setdefault(id(variable), (theirs, array))
        if not np.array_equal(array, before):
            raise ValueError(
                f"{weights.path}: {other} and {theirs} differ; here they are one."
            )
        variable.assign(array)


def _fits(name, stored, shape):
    longer = name.endswith(POSITIONS) and len(stored) == 2 and stored[0] > shape[0]
    return stored == shape or (longer and stored[1] == shape[1])


def in_common(weights, form, others, other_form):
    """Returns the parts of the embeddings that two encoders have in common, a set.

    Args:
        weights: `Weights` that have one of them.
        form: Its `Format`.
        others: `Weights` that have the other one.
        other_form: Its `Format`.
    """

    def is_same(name):
        mine, theirs = form.name(name), other_form.name(name)
        shape = weights.shapes.get(mine)
        if shape is None or shape != others.shapes.get(theirs):
            return False
        return np.array_equal(weights.read(mine), others.read(theirs))

    return {part for part, names in PARTS.items() if all(map(is_same, names))}


def measured(weights, form, num_heads=None):
    """Returns an encoder's sizes, arguments of `TransformerEncoder`, by its shapes.

    Args:
        weights: `Weights`.
        form: The encoder's `Format`.
        num_heads: A function of the hidden size, if the shapes do not tell.

    Raises:
        ValueError: A weight is missing, or has too few axes.
    """

    def shape(name, axes=2):
        sizes = weights.shapes.get(form.name(name), ())
        if len(sizes) != axes:
            raise ValueError(
                f"{weights.path}: {form.name(name)} is {list(sizes) or 'missing'}; it "
                f"should have {axes} axes."
            )
        return sizes

    vocabulary_size, embedding_size = shape("embeddings/token/embeddings")
    layers = 0
    while form.name(f"layers_{layers}/intermediate/kernel") in weights.shapes:
        layers += 1
    hidden_size, intermediate_size = shape("layers_0/intermediate/kernel")
    if num_heads is None:
        heads = shape("layers_0/attention/query/kernel", 3)[1]
    else:
        heads = num_heads(hidden_size)
    return {
        "vocabulary_size": vocabulary_size,
        "embedding_size": embedding_size,
        "hidden_size": hidden_size,
        "intermediate_size": intermediate_size,
        "num_layers": layers,
        "num_heads": heads,
        "max_length": shape(POSITIONS)[0],
        "num_segments": shape("embeddings/segment/embeddings")[0],
    }


def check_epsilon(encoder):
    """Raises a `ValueError` unless layer norms have the epsilon of the libraries' BERT.

    Args:
        encoder: A `TransformerEncoder`.
    """
    if encoder.layer_norm_epsilon != 1e-12:
        raise ValueError(
            f"An encoder with layer_norm_epsilon={encoder.layer_norm_epsilon} cannot "
            "be written: this library's has 1e-12. Write it for Hugging Face, or "
            "export a SavedModel."
        )


def refuse(parts, library):
    """Raises a `ValueError` if an encoder has parts that a library's has not.

    Args:
        parts: Those, argument -> value.
        library: What to call the library's.
    """
    if parts:
        named = ", ".join(f"{name}={value!r}" for name, value in parts.items())
        raise ValueError(
            f"An encoder with {named} has no counterpart in {library}. Use it here, or "
            "export a SavedModel."
        )


def encoder_of(model, approximate_gelu=None):
    """Returns the encoder of a model of ours that other libraries' BERT can hold.

    Args:
        model: The model.
        approximate_gelu: What their encoder has, if it has one alone, and whether it
            may take the place of gelu itself: `None`, any; `False`, tanh's, but not in
            its place; `True`, tanh's in its place.

    Raises:
        ValueError: It computes what theirs do not.
    """
    encoder = model.encoder
    options = {name: getattr(encoder, name) for name in _OF_BERT}
    others = {n: value for n, value in options.items() if value != _OF_BERT[n]}
    if not encoder.num_segments:
        others["num_segments"] = 0
    refuse(others, "other libraries' BERT and ELECTRA")
    return with_gelu(encoder, approximate_gelu)


def with_gelu(encoder, approximate_gelu):
    """Returns an encoder with the gelu of another library; see `encoder_of`."""
    if approximate_gelu is None or encoder.approximate_gelu:
        return encoder
    if not approximate_gelu:
        raise ValueError(
            "The encoder has gelu, and theirs its tanh approximation alone, so that "
            "outputs would differ by about 1e-3. Ask for that with "
            "--approximate_gelu True, or pretrain an encoder with approximate_gelu."
        )
    sizes = encoder.architecture | {"approximate_gelu": True}
    copy = TransformerEncoder(**sizes, dtype="float32", name=encoder.name)
    copy.set_weights(encoder.get_weights())
    return copy
