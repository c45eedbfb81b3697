"""One vector for each text, of what an encoder says of its tokens."""

import os

import numpy as np

from keras_corrupt.models.windows import read_in_batches, windows_of
from keras_corrupt.presets import load_preset
from keras_corrupt.tokenizers.texts import text_list

POOLINGS = ("mean", "cls")


def embed_texts(model, texts, pooling="mean", batch_size=32, progress=False):
    """Gives each text a vector: its tokens' mean, or its first token's vector.

    Args:
        model: A model with an encoder and a tokenizer, pretrained or fine-tuned; or
            what `keras_corrupt.models.load_preset` loads.
        texts: A list of strings. One that is longer than the model is cut.
        pooling: `"mean"`, over all tokens, special ones too, as in Sentence-BERT
            (Reimers and Gurevych, 2019); or `"cls"`, the first token's vector, which is
            of use after fine-tuning alone.
        batch_size: Texts in a batch. Texts of like length share one.
        progress: Whether a bar is drawn.

    Returns:
        float32 `[texts, hidden]`, NumPy.

    Raises:
        ValueError: There is no encoder or no tokenizer, `texts` is empty or no list of
            strings, or an option is none.

    Example:

    >>> from keras_corrupt.scoring import embed_texts
    >>> vectors = embed_texts("tiny_en", ["A ship at sea.", "A boat.", "A law."])
    >>> vectors.shape
    (3, 128)
    """
    if pooling not in POOLINGS:
        raise ValueError(f"`pooling` must be one of {POOLINGS}; got {pooling!r}.")
    if not batch_size >= 1:
        raise ValueError(f"`batch_size` must be 1 or more; got {batch_size!r}.")
    texts = text_list(texts)
    if isinstance(model, (str, os.PathLike)):
        model = load_preset(model)
    encoder, tokenizer = model.encoder, model.tokenizer
    if tokenizer is None:
        raise ValueError("`embed_texts` needs the model's tokenizer; it has none.")
    room = encoder.max_length - 2  # [CLS] and [SEP]
    ids = [encoded[:room] for encoded in tokenizer.encode_batch(texts)]
    windows = windows_of(ids, tokenizer, encoder.max_length)
    vectors = np.empty((len(windows), encoder.hidden_size), "float32")
    predict = encoder.predict_on_batch
    for number, hidden in read_in_batches(
        windows, predict, encoder, batch_size, progress
    ):
        hidden = hidden.astype("float32")
        vectors[number] = hidden[0] if pooling == "cls" else hidden.mean(axis=0)
    return vectors
