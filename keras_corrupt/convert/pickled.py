"""PyTorch's own files, of which nothing but arrays is read, and only with PyTorch."""

import zipfile

from keras_corrupt.convert.weights import Weights

FILE = "pytorch_model.bin"


def pickled_weights(directory):
    """Returns the `Weights` of a directory's `pytorch_model.bin`.

    Args:
        directory: A `Path`.

    Raises:
        ValueError: There is none, PyTorch is not installed, or it holds anything else.
    """
    path = directory / FILE
    if not path.is_file():
        remedy = ""
        if (directory / "tf_model.h5").is_file():
            remedy = (
                " Its tf_model.h5 is in Keras 2's format: let Transformers 4 load it "
                "with `from_tf=True`, and save it."
            )
        raise ValueError(f"{directory} has no model.safetensors.{remedy}")
    try:
        import torch
    except ImportError as error:
        raise ValueError(
            f"{path} is a pickle, which PyTorch alone reads safely. Install it (pip "
            "install torch), or get the model.safetensors."
        ) from error
    try:
        # Nothing of it is executed. Arrays of a zip archive stay on disk until read.
        arrays = torch.load(
            path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
        )
        shapes = {str(name): tuple(array.shape) for name, array in arrays.items()}
    except Exception as error:  # the file makes whatever error it likes
        raise ValueError(f"{path} is refused: it holds more than arrays.") from error
    return Weights(str(path), shapes, lambda name: arrays[name].float().numpy())
