"""One joint pretraining step, or the scores of some texts, in each library.

Each module has `make_step(system, batch_size, length, dtype)`, which returns a function
that runs one step on a batch of random tokens. The work is ELECTRA-Small's (Clark's
thesis, table 5.1) or TEAMS-Small's (Shen et al., 2021, table 5): dropout 0.1, AdamW,
gradients clipped to norm 1. The system `scoring` is ELECTRA-Small's discriminator on
texts of mixed lengths. `tagging` is an update of the thesis's BiLSTM tagger (table 4.1)
on labelled sentences, `cross_view` one on text without labels.
"""

import threading

import numpy as np

VOCABULARY = 30522
MASK_ID = 103
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TAGS = ["ADJ", "ADP", "DET", "NOUN", "PRON", "VERB"]


def random_batch(batch_size, length):
    """Returns token ids without special ones but at the ends."""
    ids = np.random.default_rng(0).integers(1000, VOCABULARY, (batch_size, length))
    ids[:, 0], ids[:, -1] = 101, 102
    return ids.astype("int32")


def random_texts(batch_size, length):
    """Returns the token ids and masks of four batches, of texts of like length each.

    The lengths are from an eighth of `length` to `length`, the longest first; each
    batch is padded to a multiple of 8.
    """
    ids = random_batch(4 * batch_size, length)
    rng = np.random.default_rng(2)
    lengths = np.sort(rng.integers(length // 8, length + 1, len(ids)))[::-1]
    mask = (np.arange(length) < lengths[:, None]).astype("int32")
    for start in range(0, len(ids), batch_size):
        rows = slice(start, start + batch_size)
        width = min(length, -(-lengths[start] // 8) * 8)
        yield (ids * mask)[rows, :width], mask[rows, :width]


def random_positions(batch_size, length):
    """Returns different positions of each sequence, 15% of them."""
    count = -(-length * 15 // 100)
    rng = np.random.default_rng(1)
    order = rng.random((batch_size, length - 2)).argsort(axis=1) + 1
    return np.sort(order[:, :count]).astype("int32")


def random_sentences(batch_size, length):
    """Returns sentences of words of two to nine letters, and a tag for each word."""
    rng = np.random.default_rng(0)
    letters = rng.integers(0, len(LETTERS), (batch_size, length, 9))
    ends = rng.integers(2, 10, (batch_size, length))
    sentences = [
        [
            "".join(LETTERS[i] for i in word[:end])
            for word, end in zip(*row, strict=True)
        ]
        for row in zip(letters, ends, strict=True)
    ]
    tags = rng.choice(TAGS, (batch_size, length)).tolist()
    return sentences, tags


def steps_of_fit(model, batches):
    """Returns a function that lets a `fit` that never ends make one more step."""
    import keras

    go, done = threading.Semaphore(0), threading.Semaphore(0)
    ended = threading.Event()

    class Turns(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            go.acquire()

        def on_train_batch_end(self, batch, logs=None):
            done.release()

    def run():
        options = {"steps_per_epoch": 10**9, "verbose": 0, "shuffle": False}
        try:
            model.fit(batches, callbacks=[Turns()], **options)
        finally:
            ended.set()
            done.release()

    fit = threading.Thread(target=run, daemon=True)
    fit.start()

    def step():
        go.release()
        done.acquire()
        if ended.is_set():
            raise RuntimeError("`fit` has ended; its error is above.")

    return step
