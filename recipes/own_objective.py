"""An objective of your own, in one file: find the words that have changed places.

    python recipes/own_objective.py

Some words of a text move to the places of others, and the encoder tells which tokens
have moved. The class below is all that the package needs: it is trained, continued,
saved, shown and fine-tuned as those built in. keras_corrupt/models/README.md walks
through it. Three minutes on two CPU cores teach it little: AUC 0.59, by chance 0.50.
"""

import keras
import numpy as np
from keras import ops

from keras_corrupt.corruption import gather_tokens, replace_tokens
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import ReplacedTokenHead
from keras_corrupt.models import Pretrainer
from keras_corrupt.models.fine_tuning import FineTuningSettings
from keras_corrupt.models.sizes import ENCODERS
from keras_corrupt.objectives import Objective
from keras_corrupt.training import PretrainConfig, main


class Network(keras.Model):
    """The encoder, and a logit of "moved" for each token."""

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = TransformerEncoder(**encoder, dtype=self.dtype_policy)
        self.head = ReplacedTokenHead(self.encoder, dtype=self.dtype_policy)
        self.built = True

    def call(self, inputs, training=False):
        return self.head(self.encoder(inputs, training=training))


class Moved(Objective):
    """The cross-entropy of "moved", and how its metrics and examples read."""

    metric_names = {"moved_loss": "moved words, loss", "moved_auc": "moved words, AUC"}
    examples_legend = "[moved (original) p]: p says the model; <suspected p>: not moved"

    def __init__(self):
        super().__init__()
        self.auc = keras.metrics.AUC(num_thresholds=1000, name="moved_auc")
        self.fraction = keras.metrics.Mean(name="moved_fraction")

    def loss(self, outputs):
        logits, moved = outputs["logits"], outputs["moved"]
        return ops.softplus(logits) - moved * logits, outputs["weights"]

    def update_metrics(self, outputs):
        moved, weights = outputs["moved"], outputs["weights"]
        self.auc.update_state(moved, ops.sigmoid(outputs["logits"]), weights)
        self.fraction.update_state(moved, weights)

    def baselines(self, metrics, unigram):
        p = np.clip(metrics["moved_fraction"], 1e-6, 1 - 1e-6)
        entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
        return {"moved_loss": (entropy, "base rate"), "moved_auc": (0.5, "chance")}

    def warnings(self, metrics, unigram):
        if metrics["moved_auc"] < 0.55:
            yield f"no moved words are found (AUC {metrics['moved_auc']:.2f}): --steps?"

    def describe(self, outputs, row, ids, token):
        p = 1 / (1 + np.exp(-outputs["logits"][row]))
        for i, now in enumerate(outputs["ids"][row][: len(ids)]):
            if now != ids[i]:
                yield i, f"[{token(now)} ({token(ids[i])}) {p[i]:.2f}]"
            elif p[i] > 0.5:
                yield i, f"<{token(now)} {p[i]:.2f}>"


@keras.saving.register_keras_serializable(package="own")
class MovedWords(Pretrainer):
    """Pretrains an encoder to tell moved tokens from those in their places.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
        distance: How many of the chosen places a token moves on.
    """

    presets = {name: {"encoder": sizes} for name, sizes in ENCODERS.items()}

    def __init__(self, encoder, distance=1, **kwargs):
        super().__init__(encoder["vocabulary_size"], encoder["max_length"], **kwargs)
        if distance not in range(1, 100):
            raise ValueError(f"`distance` must be from 1 to 99; got {distance!r}.")
        self.network = Network(encoder, dtype=self.dtype_policy, name="network")
        self.distance = distance
        self.learn_by(moved=Moved())

    @property
    def networks(self):
        return {"network": self.network}

    @property
    def encoder(self):
        return self.network.encoder

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs)
        chosen = self.masker(inputs)  # [batch, slots]
        tokens = gather_tokens(inputs["token_ids"], chosen.positions)
        count = ops.maximum(ops.sum(chosen.weights, axis=1, keepdims=True), 1.0)
        slots = ops.arange(tokens.shape[1], dtype="float32")[None, :] + self.distance
        tokens = gather_tokens(tokens, ops.cast(ops.mod(slots, count), "int32"))
        ids = replace_tokens(inputs["token_ids"], chosen, tokens)
        return {
            "ids": ids,
            "moved": ops.cast(ids != inputs["token_ids"], "float32"),
            "logits": self.network({**inputs, "token_ids": ids}, training=training),
            "weights": inputs["padding_mask"],
        }

    # === What a step costs, and what comes after training ===

    def forward_flops(self, length):
        encoder = self.encoder.flops(length, training=True)
        return encoder + self.network.head.flops(length)

    def activation_bytes(self, batch_size, length):
        return self.encoder.activation_bytes(batch_size, length, self.number_bytes)

    @classmethod
    def fine_tuning(cls, size, task):
        return FineTuningSettings(1e-3 if size == "tiny" else 1e-4, epochs=4)

    def get_config(self):
        encoder = {"encoder": self.encoder.architecture}
        return {**super().get_config(), **encoder, "distance": self.distance}


def config():
    return PretrainConfig(
        model="own>MovedWords",
        preset="tiny",
        output="runs/own_objective",
        corpus=("python-docs",),
        vocabulary_size=4096,
        objective={"mask_rate": 0.15, "masking": "span", "distance": 1},
        **dict(sequence_length=64, batch_size=32, steps=3000, interval=500),
        **dict(learning_rate=2e-3, warmup_steps=300, beta_2=0.98),
    )


if __name__ == "__main__":
    main(config(), __doc__)
