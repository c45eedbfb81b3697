"""This project, through the public `fit` and `predict_on_batch`."""

import keras
import tensorflow as tf

import keras_corrupt
from benchmarks.peers import (
    LETTERS,
    TAGS,
    random_batch,
    random_sentences,
    random_texts,
    steps_of_fit,
)
from keras_corrupt.cross_view import CrossViewTagger
from keras_corrupt.cross_view.text.sentences import Sentences
from keras_corrupt.training import SGD, AdamW
from keras_corrupt.training.compiling import compiles_with_xla

SYSTEMS = {"electra": "Electra", "teams": "Teams", "scoring": "Electra"}
DTYPES = {"bfloat16": "mixed_bfloat16", "float32": "float32"}


def make_step(system, batch_size, length, dtype):
    keras.utils.set_random_seed(0)
    if system in ("tagging", "cross_view"):
        return tagging(system, batch_size, length, dtype)
    cls = getattr(keras_corrupt.models, SYSTEMS[system])
    model = cls.from_preset("small", dtype=DTYPES[dtype])
    if system == "scoring":
        return scoring(model, batch_size, length)
    model.compile(AdamW(5e-4, global_clipnorm=1.0), jit_compile=compiles_with_xla())
    ids = random_batch(batch_size, length)
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    batches = tf.data.Dataset.from_tensors(batch).repeat()

    return steps_of_fit(model, batches)


def scoring(model, batch_size, length):
    batches = [
        {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
        for ids, mask in random_texts(batch_size, length)
    ]
    return lambda: [model.discriminator.predict_on_batch(batch) for batch in batches]


def tagger(sentences, dtype="float32"):
    """Returns the thesis's tagger for the words of sentences."""
    words = sorted({word for words in sentences for word in words})
    return CrossViewTagger.from_preset(
        "base", words=words, characters=LETTERS, labels=TAGS, dtype=DTYPES[dtype]
    )


def tagging(system, batch_size, length, dtype):
    sentences, tags = random_sentences(batch_size, length)
    model = tagger(sentences, dtype)
    model.compile(
        SGD(0.5, momentum=0.9, global_clipnorm=1.0, use_ema=True, ema_momentum=0.998),
        jit_compile=compiles_with_xla(),
    )
    labels = model.classes_of(tags) if system == "tagging" else None
    batch = model.batches(Sentences(sentences), labels, batch_size).batch(0)
    return steps_of_fit(model, tf.data.Dataset.from_tensors(batch).repeat())
