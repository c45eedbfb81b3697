"""What replicas owe each other, on virtual devices in a process of its own."""

import subprocess
import sys
import types

import keras
import numpy as np

from keras_corrupt.devices import replicas
from keras_corrupt.devices.replicas import gather_from_replicas

GATHER = """
import numpy as np
import tensorflow as tf

devices = tf.config.list_physical_devices("CPU")
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(devices[0], two)
from keras_corrupt.devices.replicas import gather_from_replicas

strategy = tf.distribute.MirroredStrategy(
    ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
)
x = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")
weights = np.random.default_rng(1).normal(size=(6, 6)).astype("float32")


def loss(rows, everything, weights):
    # Every row is compared with every row of the whole batch.
    products = tf.matmul(rows, everything, transpose_b=True)
    return tf.reduce_sum(weights * tf.sin(products))


@tf.function
def step(rows, weights):
    with tf.GradientTape() as tape:
        tape.watch(rows)
        everything = gather_from_replicas(rows)
        value = loss(rows, everything, weights)
    return everything, tape.gradient(value, rows)


def part(array):
    parts = [tf.constant(array[:3]), tf.constant(array[3:])]
    return strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group]
    )


gathered, gradients = strategy.run(step, (part(x), part(weights)))
for rows in strategy.experimental_local_results(gathered):
    np.testing.assert_array_equal(rows, x)
found = np.concatenate([np.array(g) for g in gradients.values])
variable = tf.constant(x)
with tf.GradientTape() as tape:
    tape.watch(variable)
    value = loss(variable, variable, weights)
np.testing.assert_allclose(found, tape.gradient(value, variable), rtol=1e-5, atol=1e-6)
print("equal")
"""


def test_gathered_rows_and_their_gradient_are_those_of_one_device():
    ran = subprocess.run(
        [sys.executable, "-c", GATHER], capture_output=True, text=True, timeout=300
    )
    assert ran.stdout.strip() == "equal", ran.stderr


def test_replicas_draw_from_different_seeds(monkeypatch):
    """The first's are Keras's, and none is another generator's of the model."""
    theirs = keras.random.SeedGenerator(7)
    expected = [tuple(np.array(theirs.next())) for _ in range(3)]
    drawn = []
    for seed in range(6, 9):
        for number in range(4):
            replica = types.SimpleNamespace(replica_id_in_sync_group=number)
            monkeypatch.setattr(replicas, "_replica", lambda replica=replica: replica)
            seeds = replicas.SeedGenerator(seed)
            drawn += [tuple(np.array(seeds.next())) for _ in range(3)]
            if (seed, number) == (7, 0):
                assert drawn[-3:] == expected
    assert len(set(drawn)) == len(drawn)


def test_one_device_has_all_rows():
    x = keras.ops.ones((2, 3))
    np.testing.assert_array_equal(np.array(gather_from_replicas(x)), np.ones((2, 3)))
