"""Trains for five steps without chance on some of four CPU devices.

    python train_on_devices.py OUTPUT.npz SYSTEM/SETTING/DEVICES/MODE...

Writes the metrics of each step, the weights after the last and validation metrics. The
mode is `compiled`, or `eager`, which takes less time on TensorFlow.
"""

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import keras
import numpy as np
import tensorflow as tf

from keras_corrupt import kernels
from keras_corrupt.models import replaced_token_detection
from keras_corrupt.training import AdamW, WarmupLinearDecay
from keras_corrupt.training.callbacks import validate
from tests.conftest import make_inputs
from tests.integration.train_five_steps import make_model, most_likely
from tests.training.conftest import with_devices

STEPS, ROWS = 5, 8
#: Name -> settings of the optimizer.
SETTINGS = {
    "plain": {},
    "all": {
        "global_clipnorm": 0.5,
        "gradient_accumulation_steps": 2,
        "use_ema": True,
        "ema_momentum": 0.5,
    },
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
    return tf.data.Dataset.from_tensor_slices(arrays).batch(ROWS)


def train(system, setting, devices, mode):
    """Returns the arrays of one run."""
    keras.utils.set_random_seed(0)
    model = make_model(system)
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        start = 1.0 if variable.name == "gamma" else 0.0
        variable.assign(start + rng.normal(0.0, 0.1, variable.shape))
    # A large epsilon: Adam divides by the gradient's size, and would magnify the
    # rounding errors of tiny gradients.
    optimizer = AdamW(
        WarmupLinearDecay(2e-3, total_steps=8, warmup_steps=2),
        epsilon=1e-3,
        bias_correction=False,
        **SETTINGS[setting],
    )
    model.compile(
        optimizer,
        run_eagerly=mode == "eager",
        jit_compile=keras.backend.backend() == "jax",
    )
    batches = optimizer.gradient_accumulation_steps or 1
    history = model.fit(
        dataset(STEPS * batches),
        epochs=STEPS,
        steps_per_epoch=batches,
        verbose=0,
        shuffle=False,
    ).history
    arrays = {f"metrics.{name}": values for name, values in history.items()}
    for i, variable in enumerate(model.trainable_variables):
        arrays[f"weights.{i}"] = keras.ops.convert_to_numpy(variable)
    # Three batches, the last with three of eight examples.
    return arrays | validate(model, devices.share(dataset(3, rows=19), ROWS))


if __name__ == "__main__":
    if keras.backend.backend() == "tensorflow":
        cpu = tf.config.list_physical_devices("CPU")[0]
        four = [tf.config.LogicalDeviceConfiguration()] * 4
        tf.config.set_logical_device_configuration(cpu, four)
    replaced_token_detection.sample_tokens = most_likely
    fused, found = kernels.fused, {}
    for run in sys.argv[2:]:
        system, setting, count, mode = run.split("/")
        # Without the time that the fused kernels take to compile.
        kernels.fused = fused if mode == "compiled" else kernels.plain
        devices = with_devices(int(count))
        import time

        t, c = time.time(), time.process_time()
        with devices.scope():
            for name, array in train(system, setting, devices, mode).items():
                found[f"{run}/{name}"] = array
        print(run, time.time() - t, time.process_time() - c, flush=True)
    np.savez(sys.argv[1], **found)
