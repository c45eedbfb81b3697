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
from keras_corrupt.models.encoder_sizes import ENCODERS
from keras_corrupt.models.fine_tuning import FineTuningSettings
from keras_corrupt.objectives.rendering import render
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


@keras.saving.register_keras_serializable(package="own")
class MovedWords(Pretrainer):
    """Pretrains an encoder to tell moved tokens from those in their places.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
        distance: How many of the chosen places a token moves on.
    """

    presets = {name: {"encoder": sizes} for name, sizes in ENCODERS.items()}
    loss_weights = {"moved": 1.0}
    metric_names = {"moved_loss": "moved words, loss", "moved_auc": "moved words, AUC"}
    examples_legend = "[moved (original) p]: p says the model; <suspected p>: not moved"

    def __init__(self, encoder, distance=1, **kwargs):
        super().__init__(encoder["vocabulary_size"], encoder["max_length"], **kwargs)
        if distance not in range(1, 100):
            raise ValueError(f"`distance` must be from 1 to 99; got {distance!r}.")
        self.network = Network(encoder, dtype=self.dtype_policy, name="network")
        self.auc = keras.metrics.AUC(num_thresholds=1000, name="moved_auc")
        self.moved_fraction = keras.metrics.Mean(name="moved_fraction")
        self.distance = distance
        self.built = True

    @property
    def networks(self):
        return {"network": self.network}

    @property
    def encoder(self):
        return self.network.encoder

    # === The objective ===

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs)
        chosen = self.choose_positions(inputs)  # [batch, slots]
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

    def loss_terms(self, outputs):
        logits, moved = outputs["logits"], outputs["moved"]
        return {"moved": (ops.softplus(logits) - moved * logits, outputs["weights"])}

    def update_metrics(self, outputs):
        moved, weights = outputs["moved"], outputs["weights"]
        self.auc.update_state(moved, ops.sigmoid(outputs["logits"]), weights)
        self.moved_fraction.update_state(moved, weights)

    # === What a run shows, and what comes after it ===

    def forward_flops(self, length):
        encoder = self.encoder.flops(length, training=True)
        return encoder + self.network.head.flops(length)

    def activation_bytes(self, batch_size, length):
        return self.encoder.activation_bytes(batch_size, length, self.number_bytes)

    def baselines(self, metrics, unigram):
        p = np.clip(metrics["moved_fraction"], 1e-6, 1 - 1e-6)
        entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
        return {"moved_loss": (entropy, "base rate"), "moved_auc": (0.5, "chance")}

    def warnings(self, metrics, unigram):
        if metrics["moved_auc"] < 0.55:
            yield f"no moved words are found (AUC {metrics['moved_auc']:.2f}): --steps?"

    def describe_examples(self, inputs):
        outputs = {k: np.array(v) for k, v in self(inputs, training=False).items()}
        p, token = 1 / (1 + np.exp(-outputs["logits"])), self.tokenizer.readable

        def describe(row, ids):
            for i, now in enumerate(outputs["ids"][row][: len(ids)]):
                if now != ids[i]:
                    yield i, f"[{token(now)} ({token(ids[i])}) {p[row, i]:.2f}]"
                elif p[row, i] > 0.5:
                    yield i, f"<{token(now)} {p[row, i]:.2f}>"

        return render(self.tokenizer, inputs, describe)

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
