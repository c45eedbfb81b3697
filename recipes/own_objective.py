"""An objective of your own, in one file: find the words that have changed places.

    python recipes/own_objective.py

Some words of a text move to the places of others, and the encoder tells for every token
whether it belongs where it stands (shuffled word detection). The class below is all
that the package needs to know: it is trained, continued, saved, priced, shown and
fine-tuned like the systems that are built in. keras_corrupt/models/README.md walks
through it. Minutes on two CPU cores, on the documentation that comes with Python; an
encoder of this size then finds seven of ten moved words where chance finds half.
"""

import keras
import numpy as np
from keras import ops
from keras_corrupt.models.fine_tuning import FineTuningSettings

from keras_corrupt.corruption import gather_tokens, replace_tokens
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import ReplacedTokenHead
from keras_corrupt.models import Pretrainer
from keras_corrupt.models.encoder_sizes import ENCODERS
from keras_corrupt.models.rendering import render
from keras_corrupt.training import PretrainConfig, main


class Network(keras.Model):
    """The encoder, and a logit of "moved" for each token."""

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.encoder = TransformerEncoder(**encoder, dtype=policy, name="encoder")
        self.head = ReplacedTokenHead(self.encoder, dtype=policy, name="head")
        self.built = True

    def call(self, inputs, training=False):
        return self.head(self.encoder(inputs, training=training))


@keras.saving.register_keras_serializable(package="own")
class MovedWords(Pretrainer):
    """Pretrains an encoder to tell moved tokens from those in their places.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
        distance: How many of the chosen places a token moves on.
        kwargs: Those of `Pretrainer`; `mask_rate` is the fraction of chosen places.
    """

    presets = {name: {"encoder": sizes} for name, sizes in ENCODERS.items()}
    loss_weights = {"moved": 1.0}
    metric_names = {"moved_loss": "moved words, loss", "moved_auc": "moved words, AUC"}
    examples_legend = (
        "[word here (its place) p]: moved, p says the model; <word p>: not"
    )

    def __init__(self, encoder, distance=1, **kwargs):
        positions = encoder.get("max_length", 512)
        super().__init__(encoder["vocabulary_size"], positions, **kwargs)
        if not (isinstance(distance, int) and distance > 0):
            raise ValueError(f"`distance` must be 1 or more; got {distance!r}.")
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
        ids = inputs["token_ids"]
        chosen = self.choose_positions(inputs)
        count = ops.maximum(ops.sum(chosen.weights, axis=1, keepdims=True), 1.0)
        slot = ops.arange(chosen.positions.shape[1], dtype="float32")[None, :]
        source = ops.cast(ops.mod(slot + self.distance, count), "int32")
        tokens = gather_tokens(gather_tokens(ids, chosen.positions), source)
        shuffled = replace_tokens(ids, chosen, tokens)
        return {
            "shuffled_ids": shuffled,
            "moved": ops.cast(shuffled != ids, "float32"),
            "logits": self.network(
                {**inputs, "token_ids": shuffled}, training=training
            ),
            "padding_mask": inputs["padding_mask"],
        }

    def loss_terms(self, outputs):
        logits, moved = outputs["logits"], outputs["moved"]
        return {
            "moved": (ops.softplus(logits) - moved * logits, outputs["padding_mask"])
        }

    def update_metrics(self, outputs):
        moved, real = outputs["moved"], outputs["padding_mask"]
        self.auc.update_state(moved, ops.sigmoid(outputs["logits"]), real)
        self.moved_fraction.update_state(moved, real)

    # === What a run shows, and what comes after it ===

    def forward_flops(self, length):
        return self.encoder.flops(length, training=True) + self.network.head.flops(
            length
        )

    def activation_bytes(self, batch_size, length):
        size = 4 if self.compute_dtype == "float32" else 2
        return self.encoder.activation_bytes(batch_size, length, size)

    def baselines(self, metrics, unigram):
        p = np.clip(metrics["moved_fraction"], 1e-6, 1 - 1e-6)
        entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
        return {"moved_loss": (entropy, "base rate"), "moved_auc": (0.5, "chance")}

    def warnings(self, metrics, unigram):
        if metrics["moved_auc"] < 0.55:
            yield f"moved words are not found (AUC {metrics['moved_auc']:.2f}). Try a "
            "higher --mask_rate or more steps."

    def describe_examples(self, inputs):
        outputs = {k: np.array(v) for k, v in self(inputs, training=False).items()}
        p, token = 1 / (1 + np.exp(-outputs["logits"])), self.tokenizer.vocabulary

        def describe(row, ids):
            for i, here in enumerate(outputs["shuffled_ids"][row][: len(ids)]):
                if here != ids[i]:
                    yield i, f"[{token[here]} ({token[ids[i]]}) {p[row, i]:.2f}]"
                elif p[row, i] > 0.5:
                    yield i, f"<{token[here]} {p[row, i]:.2f}>"

        return render(self.tokenizer, inputs, describe)

    @classmethod
    def fine_tuning(cls, size, task):
        return FineTuningSettings(
            learning_rate=5e-4 if size == "tiny" else 1e-4, epochs=4
        )

    def get_config(self):
        encoder = {"encoder": self.encoder.get_config(), "distance": self.distance}
        return {**super().get_config(), **encoder}


def config():
    return PretrainConfig(
        model="own>MovedWords",
        preset="tiny",
        output="runs/own_objective",
        corpus=("python-docs",),
        vocabulary_size=4096,
        validation_fraction=0.05,
        objective={"mask_rate": 0.15, "masking": "span", "distance": 1},
        sequence_length=64,
        batch_size=32,
        steps=3000,
        learning_rate=2e-3,
        warmup_steps=300,
        interval=500,
    )


if __name__ == "__main__":
    main(config(), __doc__)
