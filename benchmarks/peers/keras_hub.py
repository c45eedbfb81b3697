"""KerasHub: two ELECTRA backbones, joined by hand.

Its backbones cannot share embeddings, so there are two sets of them; the vocabulary's
logits are computed at masked positions only, by its own head.
"""

import keras
import keras_hub
import tensorflow as tf
from keras import ops

from benchmarks.peers import (
    MASK_ID,
    VOCABULARY,
    random_batch,
    random_positions,
    steps_of_fit,
)

DTYPES = {"bfloat16": "mixed_bfloat16", "float32": "float32"}


class Joint(keras.Model):
    def __init__(self):
        super().__init__()

        def backbone(hidden, heads):
            return keras_hub.models.ElectraBackbone(
                vocab_size=VOCABULARY,
                num_layers=12,
                num_heads=heads,
                hidden_dim=hidden,
                embedding_dim=128,
                intermediate_dim=4 * hidden,
            )

        self.generator, self.discriminator = backbone(64, 1), backbone(256, 4)
        self.to_embedding = keras.layers.Dense(128)
        self.head = keras_hub.layers.MaskedLMHead(
            token_embedding=self.generator.token_embedding,
            intermediate_activation="gelu",
        )
        self.transform = keras.layers.Dense(256, activation="gelu")
        self.classifier = keras.layers.Dense(1, dtype="float32")
        self.seed_generator = keras.random.SeedGenerator(0)

    def call(self, inputs, training=False):
        ids, positions = inputs["token_ids"], inputs["positions"]
        chosen = ops.max(ops.one_hot(positions, ids.shape[1], dtype="int32"), axis=1)
        masked = ops.where(chosen == 1, MASK_ID, ids)
        rest = {"segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        hidden = self.generator({"token_ids": masked, **rest}, training=training)
        hidden = self.to_embedding(hidden["sequence_output"])
        logits = ops.cast(self.head(hidden, mask_positions=positions), "float32")
        flat = ops.stop_gradient(ops.reshape(logits, (-1, VOCABULARY)))
        sampled = keras.random.categorical(flat, 1, "int32", seed=self.seed_generator)
        places = ops.one_hot(positions, ids.shape[1], dtype="int32")
        sampled = ops.reshape(sampled, ops.shape(positions))[..., None] * places
        corrupted = ops.where(chosen == 1, ops.sum(sampled, axis=1), ids)
        hidden = self.discriminator({"token_ids": corrupted, **rest}, training=training)
        rtd_logits = self.classifier(self.transform(hidden["sequence_output"]))[..., 0]
        return logits, rtd_logits, corrupted

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        logits, rtd_logits, corrupted = y_pred
        ids = x["token_ids"]
        targets = ops.take_along_axis(ids, x["positions"], axis=1)
        mlm = keras.losses.sparse_categorical_crossentropy(
            targets, logits, from_logits=True
        )
        replaced = ops.cast(corrupted != ids, "float32")
        rtd = ops.binary_crossentropy(replaced, rtd_logits, from_logits=True)
        return ops.mean(mlm) + 50 * ops.mean(rtd)


def make_step(system, batch_size, length, dtype):
    if system != "electra":
        raise ValueError("KerasHub has no TEAMS.")
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(DTYPES[dtype])
    model = Joint()
    optimizer = keras.optimizers.AdamW(
        5e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
    )
    model.compile(optimizer, jit_compile=False)
    inputs = {
        "token_ids": random_batch(batch_size, length),
        "positions": random_positions(batch_size, length),
    }
    batches = tf.data.Dataset.from_tensors((inputs,)).repeat()

    return steps_of_fit(model, batches)
