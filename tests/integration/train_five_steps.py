"""Trains for five steps without chance; writes losses and weights.

python train_five_steps.py DIRECTORY XLA RUN...

XLA is 1 to compile whole steps, 0 not to.
"""

import json
import sys
from pathlib import Path

import numpy as np
from keras import ops

from keras_corrupt.corruption import corrupters
from keras_corrupt.models import (
    CocoLM,
    Electra,
    Electric,
    MaskedLM,
    Teams,
    TwoTower,
)
from keras_corrupt.training import AdamW, WarmupLinearDecay
from tests.conftest import SIZES, make_inputs

NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}


def most_likely(logits, seed):
    return ops.cast(ops.argmax(ops.stop_gradient(logits), axis=-1), "int32")


def make_model(run, **encoder):
    ids = {name: SIZES[name] for name in ("mask_id", "unmaskable_ids")}
    discriminator = SIZES["discriminator"] | NO_DROPOUT | {"num_layers": 1} | encoder
    if run == "masked_lm":
        return MaskedLM(discriminator, keep_rate=0.0, random_rate=0.0, **ids)
    if run == "coco_lm":
        discriminator |= {
            "embedding_size": discriminator["hidden_size"],
            "relative_positions": {"num_buckets": 8, "max_distance": 16},
        }
        # The whole text is the only crop that is not drawn. At first all texts are
        # nearly alike, so that with weight 1 their gradient would hardly show.
        return CocoLM(discriminator, {}, crop_fraction=1.0, scl_weight=50.0, **ids)
    if run == "teams":
        discriminator |= {"num_layers": 2}
        return Teams(discriminator, 2, candidates="hardest", **ids)
    if run == "two_tower":
        return TwoTower(discriminator, **ids)
    if run == "electric":
        return Electric(discriminator, SIZES["generator"], **ids)
    dtype = "mixed_bfloat16" if run == "electra_bfloat16" else "float32"
    return Electra(discriminator, SIZES["generator"], dtype=dtype, **ids)


def batches():
    """Five batches whose masked positions are fixed, one slot of each row spare."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        inputs = make_inputs(seed=seed)
        # Every row has at least ten tokens; its first is [CLS].
        positions = [rng.choice(np.arange(1, 9), 4, replace=False) for _ in range(6)]
        weights = np.tile(np.array([[1.0, 1.0, 1.0, 0.0]], "float32"), (6, 1))
        inputs["masked_positions"] = np.array(positions, "int32")
        inputs["masked_weights"] = weights
        yield inputs


def train(run, directory, xla):
    model = make_model(run)
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        change = rng.normal(0.0, 0.1, variable.shape)
        start = 1.0 if variable.name == "gamma" else 0.0
        variable.assign((start + change).astype("float32"))
    schedule = WarmupLinearDecay(2e-3, total_steps=8, warmup_steps=2)
    # Adam divides by the gradient's size. A larger epsilon keeps the rounding errors of
    # a tiny gradient small, and lets the factor of the clipping be seen.
    optimizer = AdamW(
        schedule, epsilon=1e-3, bias_correction=False, global_clipnorm=1.0
    )
    model.compile(optimizer=optimizer, jit_compile=xla)

    arrays = {f"initial.{i}": v for i, v in enumerate(weights_of(model))}
    losses = []
    for inputs in batches():
        model.reset_metrics()
        logs = model.train_on_batch(inputs, return_dict=True)
        losses.append({name: float(value) for name, value in logs.items()})
    arrays |= {f"final.{i}": v for i, v in enumerate(weights_of(model))}
    np.savez(directory / f"{run}.npz", **arrays)
    (directory / f"{run}.json").write_text(json.dumps(losses))


def weights_of(model):
    return [np.array(variable) for variable in model.trainable_variables]


if __name__ == "__main__":
    corrupters.sample_tokens = most_likely
    directory = Path(sys.argv[1])
    directory.mkdir()
    for run in sys.argv[3:]:
        train(run, directory, xla=sys.argv[2] == "1")
