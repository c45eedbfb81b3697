"""TensorFlow's checkpoints, also of its first version."""

from pathlib import Path

import numpy as np

from keras_corrupt.convert.weights import Weights

_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def prefix_of(path):
    """Returns a checkpoint's prefix, `None` if there is no checkpoint.

    Args:
        path: The prefix, or the directory of one checkpoint, a `Path`.

    Raises:
        ValueError: There are several.
    """
    if path.with_name(f"{path.name}.index").exists():
        prefix = path
    else:
        indices = sorted(path.glob("*.index"))
        if len(indices) > 1:
            names = ", ".join(file.stem for file in indices)
            raise ValueError(f"{path} has several checkpoints; name one: {names}.")
        if not indices:
            return None
        prefix = indices[0].with_suffix("")
    for file in prefix.parent.glob(f"{prefix.name}.*"):
        if not file.is_file():
            raise ValueError(f"{file} is no file.")
    return prefix


def checkpoint_weights(prefix):
    """Returns the `Weights` of a checkpoint, optimizers' left out.

    Args:
        prefix: A `Path`.

    Raises:
        ValueError: Its arrays are not there.
    """
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(prefix))
    types = reader.get_variable_to_dtype_map()
    shapes = {
        name: tuple(shape)
        for name, shape in reader.get_variable_to_shape_map().items()
        if types[name].is_floating and not _is_optimizers(name)
    }
    weights = Weights(str(prefix), shapes, reader.get_tensor)
    files = Path(prefix).parent.glob(f"{Path(prefix).name}.data-*")
    stored = sum(file.stat().st_size for file in files)
    if 2 * weights.size[1] > stored:  # two bytes are the smallest float
        raise ValueError(f"{prefix} describes more than its {stored:,} bytes.")
    return weights


def _is_optimizers(name):
    last = name.rsplit("/", 1)[-1]
    return (
        ".OPTIMIZER_SLOT" in name
        or name.startswith(("optimizer/", "_optimizer"))
        or last in ("adam_m", "adam_v")
    )


def is_object_based(prefix):
    """Whether a checkpoint is one of objects, as TensorFlow 2 writes them."""
    import tensorflow as tf

    return tf.train.load_checkpoint(str(prefix)).has_tensor(_GRAPH)


class ObjectGraph:
    """The paths of attributes by which a checkpoint's variables are reached.

    Which of a variable's paths is its name depends on what else was saved.

    Args:
        prefix: The checkpoint's.
    """

    def __init__(self, prefix):
        import tensorflow as tf
        from tensorflow.core.protobuf import trackable_object_graph_pb2

        reader = tf.train.load_checkpoint(str(prefix))
        graph = trackable_object_graph_pb2.TrackableObjectGraph()
        graph.ParseFromString(reader.get_tensor(_GRAPH))
        self.nodes = graph.nodes

    def node(self, path):
        """Returns the node at a path, `None` if there is none."""
        node = self.nodes[0]
        for name in path.split("/"):
            numbers = [c.node_id for c in node.children if c.local_name == name]
            if not numbers or not 0 <= numbers[0] < len(self.nodes):
                return None
            node = self.nodes[numbers[0]]
        return node

    def __contains__(self, path):
        return self.node(path) is not None

    def key(self, path):
        """Returns the name of the variable at a path, or the path if none is there."""
        node = self.node(path)
        if node is None or not node.attributes:
            return path
        return node.attributes[0].checkpoint_key


def write_checkpoint(prefix, arrays):
    """Writes arrays as a checkpoint of objects.

    Args:
        prefix: A `Path`.
        arrays: Path of attributes -> array.
    """
    import tensorflow as tf

    root = tf.train.Checkpoint()
    for path, array in arrays.items():
        *parents, last = path.split("/")
        node = root
        for name in parents:
            if not hasattr(node, name):
                setattr(node, name, tf.Module())
            node = getattr(node, name)
        setattr(node, last, tf.Variable(np.asarray(array, "float32")))
    root.write(str(prefix))
