import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Compiling takes much longer than running what is compiled.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
)

import contextlib
import functools
import gc
import importlib
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.tokenizers import WordPieceTokenizer
from tests.lists import LISTS, check_parameters, is_in, is_of
from tests.reach import reached

ROOT = Path(__file__).parents[1]
#: What users read first.
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# What records the fixtures needs other libraries than the tests do.
collect_ignore = ["fixtures"]

#: Whether to compile a step whole: on JAX what is not compiled whole is compiled one
#: operation at a time, and on TensorFlow compiling takes longer than a few steps.
COMPILED = keras.backend.backend() == "jax"

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

#: Two small networks. Ids 0, 2 and 3 are [PAD], [CLS] and [SEP], 4 is [MASK]. Tests in
#: which layers matter add one.
SIZES = {
    "discriminator": {
        "vocabulary_size": 50,
        "num_layers": 1,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_heads": 2,
        "embedding_size": 12,
        "max_length": 24,
    },
    "generator": {"hidden_size": 8, "intermediate_size": 16, "num_heads": 1},
    "mask_id": 4,
    "unmaskable_ids": (0, 2, 3),
}

#: All of ModernBERT's parts, for an encoder of `SIZES`.
MODERN = {
    "num_segments": 0,
    "positions": "rotary",
    "rotary_theta": 160_000.0,
    "local_rotary_theta": 10_000.0,
    "norm": "pre",
    "feed_forward": "geglu",
    "use_bias": False,
    "local_window": 4,
    "global_every": 3,
}


def pytest_addoption(parser):
    parser.addoption(
        "--reached",
        action="store_true",
        help="take the slow tests that a change reaches (tests/reach.py)",
    )


def lists_of(config):
    """Returns each list's marker and names; of slow tests those that are asked for."""
    return LISTS | {"slow": reached()} if config.getoption("reached") else LISTS


def pytest_report_header(config):
    if config.getoption("reached"):
        return f"reached: {len(reached())} of the {len(LISTS['slow'])} in slow.txt"


def pytest_ignore_collect(collection_path, config):
    """Leaves out files that have no test of the list that `-m` chooses alone."""
    listed = lists_of(config).get(config.option.markexpr)
    if listed is not None and collection_path.name.startswith("test_"):
        path = collection_path.relative_to(ROOT).as_posix()
        return None if is_of(listed, path) else True


@pytest.hookimpl(tryfirst=True)  # Before `-m` chooses.
def pytest_collection_modifyitems(config, items):
    here, left_out = Path(__file__).parent, []
    slow = lists_of(config)["slow"]
    for item in items:
        if here not in item.path.parents:  # an example in a docstring
            continue
        marks = {mark for mark, listed in LISTS.items() if is_in(listed, item.nodeid)}
        for mark in marks:
            item.add_marker(mark)
        if "slow" in marks and not is_in(slow, item.nodeid):
            left_out.append(item)
    if not any("::" in argument for argument in config.args):
        check_parameters(item.nodeid for item in items)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def without_autotuning(dataset):
    """Returns a dataset whose iterators end at once: see `devices.batches.fed`."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


# All that is iterated over passes through this method, also what Keras makes.
tf.data.Dataset._apply_debug_options = without_autotuning

if keras.backend.backend() == "jax":
    from jax._src.interpreters import mlir

    # JAX makes an MLIR context for each program, which takes longer than the rest of
    # lowering a single operation. One serves all.
    mlir.make_ir_context = functools.cache(mlir.make_ir_context)


# Python's garbage collector would take a quarter of the time, most of it to find that
# modules and earlier tests' graphs are still in use.
gc.set_threshold(50_000, 20, 100)
gc.freeze()


@contextlib.contextmanager
def without_graphs(eagerly=True):
    """Has TensorFlow run models operation by operation.

    A run of few steps takes half as long so, because no step is traced.
    """
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(eagerly)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


@pytest.fixture(scope="module")
def eager():
    """For files whose tests make few steps."""
    with without_graphs():
        yield


@pytest.fixture
def graphs():
    """For a test of a graph, or of many steps, in such a file."""
    with without_graphs(eagerly=False):
        yield


#: Linux lets a process have 65,530 of them. JAX's compiled programs take several each,
#: and it ends by a segmentation fault when there are no more.
MANY_MEMORY_MAPS = 25_000


@pytest.fixture(autouse=True, scope="module")
def whats_left_is_not_looked_at_again():
    yield
    gc.collect()
    maps = Path("/proc/self/maps")
    if keras.backend.backend() == "jax" and maps.exists():
        if maps.read_text().count("\n") > MANY_MEMORY_MAPS:
            importlib.import_module("jax").clear_caches()
            gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(0)


@pytest.fixture
def sizes():
    return {k: dict(v) if isinstance(v, dict) else v for k, v in SIZES.items()}


@pytest.fixture
def inputs():
    return make_inputs()


def make_inputs(batch=6, length=20, seed=0):
    """Two-segment examples of different lengths, padded."""
    rng = np.random.default_rng(seed)
    token_ids = rng.integers(5, 50, (batch, length)).astype("int32")
    lengths = rng.integers(length // 2, length + 1, batch)
    lengths[0] = length
    position = np.arange(length)[None, :]
    padding_mask = (position < lengths[:, None]).astype("int32")
    segment_ids = (position > lengths[:, None] // 2).astype("int32") * padding_mask
    token_ids[:, 0] = 2
    token_ids[np.arange(batch), lengths // 2] = 3
    token_ids[np.arange(batch), lengths - 1] = 3
    return {
        "token_ids": token_ids * padding_mask,
        "segment_ids": segment_ids,
        "padding_mask": padding_mask,
    }


@pytest.fixture
def tokenizer():
    words = "the a cat dog sat ran on under mat rug quick slow ##s ##ly . ,".split()
    letters = [chr(c) for c in range(98, 122)]
    return WordPieceTokenizer(SPECIAL + words + letters)


def gradients_of(loss, model):
    """Gradients of what `loss()` returns, by variable id, as NumPy arrays."""
    return loss_and_gradients(loss, model)[1]


def loss_and_gradients(loss, model, compiled=True):
    """What `loss()` returns, a float, and its `gradients_of`.

    On JAX compiled at once: one by one, operations take several times as long.
    """
    variables = model.trainable_variables
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss()
        found = tape.gradient(value, [v.value for v in variables])
        found = [None if g is None else tf.convert_to_tensor(g) for g in found]
    else:
        import jax

        rest = [v.value for v in model.non_trainable_variables]

        def stateless(trainable):
            mapping = [*zip(variables, trainable, strict=True)]
            mapping += zip(model.non_trainable_variables, rest, strict=True)
            with keras.StatelessScope(mapping):
                return loss()

        function = jax.value_and_grad(stateless)
        function = jax.jit(function) if compiled else function
        value, found = function([v.value for v in variables])
    return float(value), {
        id(v): np.zeros(v.shape) if g is None else np.array(g)
        for v, g in zip(variables, found, strict=True)
    }


def own_system(preset, module):
    """Makes the class of a preset of `Electra` one of the user's own, in `module.py`.

    Returns:
        The class as flags name it.
    """
    config = preset / "config.json"
    config.write_text(config.read_text().replace('"Electra"', f'"{module}>Own"'))
    (preset.parent / f"{module}.py").write_text(
        "import keras\nfrom keras_corrupt.models import Electra\n"
        f'@keras.saving.register_keras_serializable("{module}")\n'
        "class Own(Electra): pass\n"
    )
    return f"{module}:Own"
