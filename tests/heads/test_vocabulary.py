import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import VocabularyHead
from tests.conftest import COMPILED, SIZES, gradients_of, make_inputs

BATCH, LENGTH = 3, 11
CONFIG = SIZES["discriminator"] | {"initializer_range": 0.5}
VOCABULARY = CONFIG["vocabulary_size"]
FLAT = CONFIG | {"embedding_size": 16}
HEADS = {
    "with a transform": (CONFIG, {}),
    "without": (FLAT, {"transform": False}),
    "of two towers": (CONFIG, {"hidden_size": 32}),
}


class Network(keras.Model):
    """A head, and what it reads as a variable, so that it has a gradient."""

    def __init__(self, case="with a transform", chunk_size=4, **kwargs):
        super().__init__(**kwargs)
        config, options = HEADS[case]
        self.encoder = TransformerEncoder(**config, dtype=self.dtype_policy)
        self.head = VocabularyHead(
            self.encoder, chunk_size=chunk_size, dtype=self.dtype_policy, **options
        )
        rng = np.random.default_rng(0)
        shape = BATCH, LENGTH, options.get("hidden_size", 16)
        self.hidden = self.add_weight(shape=shape, name="hidden")
        self.hidden.assign(rng.normal(size=shape))
        self.head.bias.assign(rng.normal(size=VOCABULARY))
        self.token_ids = rng.integers(0, VOCABULARY, (BATCH, LENGTH)).astype("int32")
        self.weights_ = rng.normal(size=(BATCH, LENGTH)).astype("float32")
        self.built = True

    def states(self):
        return ops.cast(ops.convert_to_tensor(self.hidden), self.compute_dtype)

    def logits(self):
        """The logits of all positions: the plain form."""
        positions = np.tile(np.arange(LENGTH, dtype="int32"), (BATCH, 1))
        return self.head(self.states(), positions)

    def plain_loss(self):
        return ops.sparse_categorical_crossentropy(
            self.token_ids, self.logits(), from_logits=True
        )

    def loss_in_chunks(self):
        return self.head.loss(self.states(), self.token_ids)


def compiled(function):
    """A function without arguments, compiled as a whole."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=True)
    import jax

    return jax.jit(function)


@pytest.mark.parametrize("chunk_size", [1, 4, 11, 64])
@pytest.mark.parametrize("case", HEADS)
def test_loss_and_all_gradients_equal_the_plain_form(case, chunk_size):
    network = Network(case, chunk_size)
    expected = np.array(network.plain_loss())
    assert expected.std() > 0.1
    np.testing.assert_allclose(network.loss_in_chunks(), expected, atol=1e-5)
    found = gradients_of(
        lambda: ops.sum(network.loss_in_chunks() * network.weights_), network
    )
    plain = gradients_of(
        lambda: ops.sum(network.plain_loss() * network.weights_), network
    )
    head = [*network.head.trainable_variables, network.hidden]
    assert len(head) == (3 if case == "without" else 7)
    for variable in head:
        assert abs(plain[id(variable)]).max() > 0.05, variable.path
        np.testing.assert_allclose(
            found[id(variable)], plain[id(variable)], atol=2e-5, err_msg=variable.path
        )


def test_loss_and_gradients_compile():
    network = Network()
    loss = compiled(network.loss_in_chunks)
    np.testing.assert_allclose(loss(), network.plain_loss(), atol=1e-5)

    def weighted():
        return ops.sum(network.loss_in_chunks() * network.weights_)

    expected = gradients_of(weighted, network)
    hidden, table = network.hidden, network.head.token.embeddings
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        @tf.function(jit_compile=True)
        def gradients():
            with tf.GradientTape() as tape:
                total = weighted()
            return tape.gradient(total, [hidden.value, table.value])

    else:
        import jax

        def of(values):
            mapping = list(zip((hidden, table), values, strict=True))
            with keras.StatelessScope(mapping):
                return weighted()

        def gradients():
            return jax.jit(jax.grad(of))([hidden.value, table.value])

    for found, variable in zip(gradients(), (hidden, table), strict=True):
        np.testing.assert_allclose(found, expected[id(variable)], atol=1e-5)


class AllPositions(Network):
    """Learns every token of its input from its place."""

    def call(self, inputs, training=False):
        return self.head.loss(self.encoder(inputs, training=training), inputs["ids"])

    def compute_loss(self, x, y, y_pred, sample_weight, training=True):
        return ops.mean(y_pred)


def test_fit_learns_from_all_positions():
    model = AllPositions(dtype="mixed_bfloat16")
    ids = make_inputs(batch=4)["token_ids"]
    inputs = {"token_ids": 0 * ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    optimizer = keras.optimizers.Adam(1e-2)
    model.compile(optimizer, jit_compile=COMPILED)
    x = {**inputs, "ids": np.tile(ids[:1], (4, 1))}
    history = model.fit(x, batch_size=4, epochs=60, verbose=0).history["loss"]
    assert history[-1] < 0.6 * history[0]


def test_bfloat16_is_computed_in_float32_but_for_the_products():
    network, exact = Network(dtype="mixed_bfloat16"), Network()
    exact.set_weights(network.get_weights())
    loss = network.loss_in_chunks()
    assert keras.backend.standardize_dtype(loss.dtype) == "float32"
    np.testing.assert_allclose(loss, exact.plain_loss(), atol=0.1)
    found, plain = (
        gradients_of(lambda n=n: ops.sum(n.loss_in_chunks() * n.weights_), n)
        for n in (network, exact)
    )
    for ours, theirs in (
        (network.head.token.embeddings, exact.head.token.embeddings),
        (network.head.bias, exact.head.bias),
        (network.hidden, exact.hidden),
    ):
        error = found[id(ours)] - plain[id(theirs)]
        assert np.linalg.norm(error) < 0.02 * np.linalg.norm(plain[id(theirs)])


def test_log_probabilities_are_the_softmaxs():
    network = Network()
    logits = np.array(network.logits(), "float64")
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = np.take_along_axis(logs, network.token_ids[..., None], -1)[..., 0]
    found = network.head.log_probabilities(network.states(), network.token_ids)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_top_k_are_the_largest_logits():
    network = Network()
    expected = np.argsort(-np.array(network.logits()), axis=-1)[..., :5]
    found = np.array(network.head.top_k(network.states(), 5))
    np.testing.assert_array_equal(found, expected)
    again = compiled(lambda: network.head.top_k(network.states(), 5))()
    np.testing.assert_array_equal(again, expected)


# === Memory ===


def shapes_of_jaxpr(jaxpr):
    """The shapes of all that a program computes, loops and calls included."""
    import jax

    for equation in jaxpr.eqns:
        for variable in equation.outvars:
            yield tuple(variable.aval.shape)
        for value in jax.tree.leaves(
            list(equation.params.values()),
            is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr"),
        ):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from shapes_of_jaxpr(inner)


def shapes_of_graph(graph):
    """The same of TensorFlow's; loops and calls are functions of the graph's."""
    definition = graph.as_graph_def(add_shapes=True)
    functions = [f.node_def for f in definition.library.function]
    for nodes in (definition.node, *functions):
        for node in nodes:
            for shape in node.attr["_output_shapes"].list.shape:
                if not shape.unknown_rank:
                    yield tuple(abs(n.size) for n in shape.dim)


def shapes(function, network):
    """The shapes of all arrays of a loss and its gradients."""
    variables = [network.hidden, *network.head.trainable_variables]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                total = ops.sum(function())
            return tape.gradient(total, [v.value for v in variables])

        return list(shapes_of_graph(step.get_concrete_function().graph))
    import jax

    def of(values):
        with keras.StatelessScope(list(zip(variables, values, strict=True))):
            return ops.sum(function())

    jaxpr = jax.make_jaxpr(jax.grad(of))([v.value for v in variables])
    return list(shapes_of_jaxpr(jaxpr.jaxpr))


def test_logits_of_all_positions_are_never_held():
    network = Network(chunk_size=2)
    whole, chunk = (n * BATCH * VOCABULARY for n in (LENGTH, 2))
    plain, in_chunks = (
        set(map(math.prod, shapes(function, network)))
        for function in (network.plain_loss, network.loss_in_chunks)
    )
    assert whole in plain  # so the test would see it
    assert chunk in in_chunks  # in the loops, too
    assert max(in_chunks) <= max(chunk, VOCABULARY * CONFIG["embedding_size"])


def test_errors_name_the_argument():
    encoder = TransformerEncoder(**CONFIG)
    with pytest.raises(
        ValueError, match="`transform=False`.*embedding_size=12.*got 16"
    ):
        VocabularyHead(encoder, transform=False)
