"""Tasks' examples from TensorFlow Datasets, which downloads them once."""


def read_examples(name, split):
    """Yields a dataset's examples in their order, dicts of NumPy values.

    Raises:
        ImportError: The library is not installed.
    """
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise ImportError(
            f"`tfds:{name}` needs tensorflow-datasets: pip install -e '.[tfds]'."
        ) from error
    builder = tfds.builder(name)
    builder.download_and_prepare()
    yield from tfds.as_numpy(builder.as_dataset(split=split, shuffle_files=False))
