"""ONNX, out."""

from keras_corrupt.convert import exported

FILE = "model.onnx"


def write(directory, model, options):
    """Writes a model's graph, for texts of any length.

    Args:
        directory: A `Path`, empty.
        model: A model of ours.
        options: `Options`.

    Raises:
        ValueError: The backend is not TensorFlow, tf2onnx is not installed, or ONNX has
            no such operation.
    """
    try:
        import onnx
        import tf2onnx  # noqa: F401
    except ImportError as error:
        raise ValueError(
            "ONNX needs tf2onnx: pip install tf2onnx onnxruntime."
        ) from error
    _teach_erfc()
    exported.write(directory / FILE, model, format="onnx")
    try:
        onnx.checker.check_model(directory / FILE)
    except onnx.checker.ValidationError as error:
        raise ValueError(f"ONNX cannot hold the model: {error}") from error


def _teach_erfc():
    """Gives tf2onnx the operation of gelu that it has not."""
    import numpy as np
    from tf2onnx.handler import tf_op

    @tf_op("Erfc")
    class Erfc:
        @classmethod
        def version_9(cls, ctx, node, **kwargs):
            inputs, outputs = node.input, node.output
            shape, dtype = ctx.get_shape(outputs[0]), ctx.get_dtype(outputs[0])
            ctx.remove_node(node.name)
            one = ctx.make_const(f"{node.name}_one", np.ones((), "float32")).output[0]
            erf = ctx.make_node("Erf", inputs, shapes=[shape], dtypes=[dtype]).output[0]
            ctx.make_node(
                "Sub", [one, erf], outputs=outputs, shapes=[shape], dtypes=[dtype]
            )


def outputs(directory, inputs):
    """Returns what ONNX's runtime makes of a directory: name -> array."""
    import onnxruntime

    session = onnxruntime.InferenceSession(directory / FILE)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))
