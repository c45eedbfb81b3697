"""Weights in the HDF5 format of Keras 2, whose order alone tells them apart."""

import h5py


def check_format(path):
    """Raises a `ValueError` if a file holds weights in Keras 2's format.

    Another model's weights would go to wrong places, or fail halfway.

    Args:
        path: The file; other kinds than HDF5 pass.
    """
    if not str(path).endswith((".h5", ".hdf5")) or not h5py.is_hdf5(path):
        return
    with h5py.File(path, "r") as file:
        if "layer_names" in file.attrs or "model_weights" in file:
            raise ValueError(
                f"{path} holds weights in Keras 2's format, which does not tell where "
                "they belong. Load it with the model that wrote it, and there save "
                "`.weights.h5` with Keras 3, or what `keras_corrupt.convert` reads."
            )
    if not str(path).endswith(".weights.h5"):
        raise ValueError(
            f"{path}: Keras 3 knows a file of weights by its name. Rename the file to "
            "end in `.weights.h5`."
        )
