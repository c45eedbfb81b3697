"""Trains for three steps without chance on some of four CPU devices.

    python train_on_devices.py OUTPUT.npz DATA SYSTEM/SETTING/DEVICES/MODE...

Writes the metrics of each step, the weights after the last and validation metrics. The
mode is `compiled`, or `eager`, which takes less time on TensorFlow, or `many` for the
steps in one call. In place of a
system, `draws` writes what each device draws, and `continued` what a run comes to that
goes on with other devices; that one reads examples from DATA.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":  # before the backend is loaded
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=4"

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.corruption import Masking, corrupters, masker
from keras_corrupt.devices.batches import Batches
from keras_corrupt.models import MaskedLM
from keras_corrupt.training import (
    AdamW,
    Checkpoints,
    Muon,
    PretrainConfig,
    WarmupLinearDecay,
    pretrain,
)
from keras_corrupt.training.callbacks import read_metrics, validate
from tests.conftest import COMPILED, SIZES, make_inputs
from tests.integration.train_five_steps import NO_DROPOUT, make_model, most_likely
from tests.training.conftest import with_devices

STEPS, ROWS, INTERVAL = 3, 8, 3
#: Name -> settings of the optimizer; `micro_batches` and `num_masks` are the model's.
SETTINGS = {
    "plain": {},
    "all": {
        "global_clipnorm": 0.5,
        "micro_batches": 2,
        "use_ema": True,
        "ema_momentum": 0.5,
    },
    "masks": {"num_masks": 2},
    "muon": {"optimizer": Muon, "global_clipnorm": 0.5, "micro_batches": 2},
}


def batch(seed):
    """Examples whose later rows are shorter and have fewer positions to learn from.

    The last two rows have none at all, so that one of four devices has none.
    """
    rng = np.random.default_rng(seed)
    inputs = make_inputs(ROWS, seed=seed)
    keep = np.arange(20)[None, :] < np.arange(20, 20 - ROWS, -1)[:, None]
    inputs = {name: array * keep for name, array in inputs.items()}
    # Every row has at least ten tokens; its first is [CLS].
    positions = [rng.choice(np.arange(1, 9), 4, replace=False) for _ in range(ROWS)]
    counts = np.array([4, 4, 3, 2, 2, 1, 0, 0])
    weights = np.arange(4)[None, :] < counts[:, None]
    return inputs | {
        "masked_positions": np.array(positions, "int32"),
        "masked_weights": weights.astype("float32"),
    }


def dataset(batches, rows=None):
    """Batches of eight examples, as many as there are in the first `rows`."""
    arrays = [batch(seed) for seed in range(batches)]
    arrays = {name: np.concatenate([a[name] for a in arrays]) for name in arrays[0]}
    arrays = {name: array[:rows] for name, array in arrays.items()}

    def rows_of(number):
        some = slice(ROWS * number, ROWS * (number + 1))
        return {name: array[some] for name, array in arrays.items()}

    return Batches(rows_of, batches, varying=(0,) if rows else ())


def without_masks(inputs):
    return {n: x for n, x in inputs.items() if not n.startswith("masked_")}


def train(system, setting, devices, at_once):
    """Returns the arrays of one run, which makes so many steps in a call."""
    model = make_model(system)
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        start = 1.0 if variable.name == "gamma" else 0.0
        variable.assign(start + rng.normal(0.0, 0.1, variable.shape))
    settings = {"micro_batches": 1, "num_masks": 1, **SETTINGS[setting]}
    model.micro_batches = settings.pop("micro_batches")
    num_masks = model.masker.options["num_masks"] = settings.pop("num_masks")
    # A large epsilon: Adam divides by the gradient's size, and would magnify the
    # rounding errors of tiny gradients.
    optimizer = settings.pop("optimizer", AdamW)(
        WarmupLinearDecay(2e-3, total_steps=8, warmup_steps=2),
        epsilon=1e-3,
        bias_correction=False,
        **settings,
    )
    model.compile(optimizer, jit_compile=COMPILED, steps_per_execution=at_once)
    batches = dataset(STEPS)
    with pytest.MonkeyPatch.context() as patch:
        if num_masks > 1:
            batches = batches.map(without_masks)
            patch.setattr(masker, "choose_positions", first_positions)
        history = model.fit(
            batches,
            epochs=STEPS // at_once,
            steps_per_epoch=at_once,
            verbose=0,
            shuffle=False,
        ).history
    arrays = {f"metrics.{name}": values for name, values in history.items()}
    for i, variable in enumerate(model.trainable_variables):
        arrays[f"weights.{i}"] = keras.ops.convert_to_numpy(variable)
    # Three batches, the last with three of eight examples.
    return arrays | validate(model, devices.part_of(dataset(3, rows=19), ROWS))


def draws(devices):
    """What a model draws on each device for one and the same example."""
    inputs = {name: array[:1] for name, array in batch(0).items()}
    fixed = ("masked_positions", "masked_weights")
    found = {}
    for name, dropout, static in (
        ("masks", {}, False),
        ("dropout", {"dropout": 0.5}, True),
        ("attention_dropout", {"attention_dropout": 0.5}, True),
    ):
        model = make_model("electra", **dropout)
        x = {n: a for n, a in inputs.items() if static or n not in fixed}
        outputs = on_each(devices, model, x)
        seen = {"masked_positions": outputs["corrupted"].masking.positions}
        if static:
            logits = {term: outputs[term].logits for term in ("mlm", "rtd")}
            seen = {f"{term}_logits": x for term, x in logits.items()}
        found |= {f"{name}.{n}": x for n, x in seen.items()}
    return found


def on_each(devices, model, inputs):
    """Calls a model on the same example on all devices; returns arrays of rows."""
    if keras.backend.backend() == "tensorflow":
        outputs = devices.handle.run(lambda: model(inputs, training=True))
        values = devices.handle.experimental_local_results
        return keras.tree.map_structure(
            lambda x: np.concatenate(values(x), axis=0), outputs
        )
    import jax

    def rows(array):
        array = np.repeat(array, len(devices.devices), axis=0)
        layout = devices.handle.get_data_layout(array.shape)
        return jax.device_put(array, layout.backend_layout)

    @jax.jit
    def call(trainable, rest, x):
        return model.stateless_call(trainable, rest, x, training=True)[0]

    variables = (model.trainable_variables, model.non_trainable_variables)
    values = [[v.value for v in group] for group in variables]
    outputs = call(*values, {name: rows(array) for name, array in inputs.items()})
    return keras.tree.map_structure(np.asarray, outputs)


class IntervalEnded(Exception):
    """Ends a run after its first checkpoint."""


def continued(data, counts):
    """What a run without chance comes to that uses so many devices in each step."""
    encoder = SIZES["discriminator"] | {"vocabulary_size": 120, "max_length": 32}
    preset = {"encoder": encoder | NO_DROPOUT, "mask_rate": 0.1}
    save = Checkpoints.save

    def save_and_end(self, model, step, phase):
        save(self, model, step, phase)
        raise IntervalEnded

    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as output,
    ):
        patch.setitem(MaskedLM.presets, "tiny", preset)
        patch.setattr(masker, "choose_positions", first_positions)
        patch.setattr(Checkpoints, "save", save_and_end)
        for count in counts:
            config = PretrainConfig(
                model="MaskedLM",
                preset="tiny",
                output=f"{output}/run",
                data=data,
                objective={"keep_rate": 0.0, "random_rate": 0.0},
                sequence_length=32,
                batch_size=8,
                steps=INTERVAL * len(counts),
                learning_rate=1e-2,
                warmup_steps=1,
                epsilon=1e-3,
                interval=INTERVAL,
                validation_batches=2,
                devices=count,
            )
            with contextlib.suppress(IntervalEnded):
                pretrain(config)
        rows = read_metrics(Path(output) / "run" / "metrics.csv")
        last = Checkpoints(Path(output) / "run" / "checkpoints")
        with np.load(last.path(INTERVAL * len(counts))) as archive:
            arrays = {name: archive[name] for name in archive.files}
    del arrays["description"]
    names = ("loss", "mlm_accuracy", "val_mlm_loss")
    return arrays | {name: np.array([row[name] for row in rows]) for name in names}


def first_positions(inputs, mask_rate, unmaskable_ids, seed, num_masks):
    """Chooses the same positions each time: the first four, the next four and so on."""
    rows = keras.ops.shape(inputs["token_ids"])[0]
    masks = keras.ops.arange(1, 1 + 4 * num_masks, dtype="int32")
    positions = keras.ops.tile(keras.ops.reshape(masks, (num_masks, 4)), (rows, 1))
    weights = keras.ops.cast(inputs["padding_mask"][:, 12:16], "float32")
    return Masking(positions, keras.ops.repeat(weights, num_masks, axis=0))


if __name__ == "__main__":
    if keras.backend.backend() == "tensorflow":
        cpu = tf.config.list_physical_devices("CPU")[0]
        four = [tf.config.LogicalDeviceConfiguration()] * 4
        tf.config.set_logical_device_configuration(cpu, four)
    corrupters.sample_tokens = most_likely
    found = {}
    for run in sys.argv[3:]:
        system, setting, count, mode = run.split("/")
        tf.config.run_functions_eagerly(mode == "eager")
        if system == "continued":
            arrays = continued(sys.argv[2], [int(n) for n in count.split(",")])
        else:
            devices = with_devices(int(count))
            with devices.scope():
                keras.utils.set_random_seed(0)
                if system == "draws":
                    arrays = draws(devices)
                else:
                    at_once = STEPS if mode == "many" else 1
                    arrays = train(system, setting, devices, at_once)
        found |= {f"{run}::{name}": array for name, array in arrays.items()}
        np.savez(sys.argv[1], **found)
