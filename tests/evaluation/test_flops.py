import jax
import jax.numpy as jnp
import pytest

from keras_corrupt.evaluation import flops
from keras_corrupt.evaluation.thesis_tables import (
    EXPLANATIONS,
    RUNS,
    run_flops,
    scientific,
)
from keras_corrupt.models.electra.presets import PRESETS
from keras_corrupt.models.masked_lm.presets import PRESETS as MASKED_LM
from keras_corrupt.models.teams.presets import PRESETS as TEAMS

LENGTH = 24
ENCODER = {
    "vocabulary_size": 90,
    "num_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 80,
    "num_heads": 4,
    "embedding_size": 16,
    "max_length": 40,
}


# --- Against the thesis's printed numbers ---


@pytest.mark.parametrize("size, printed", [("small", "3.7e9"), ("base", "2.9e10")])
def test_inference_flops_are_table_5_3s(size, printed):
    encoder = PRESETS[size]["discriminator"]
    assert scientific(flops.inference_flops(encoder, 128)) == printed


COUNTED_OTHERWISE = ("ELECTRA-Small", "ELECTRA-400K")


@pytest.mark.parametrize(
    "run", [run for run in RUNS if run.name not in COUNTED_OTHERWISE]
)
def test_pretraining_flops_are_the_tables(run):
    assert scientific(run_flops(run)) == run.train


@pytest.mark.parametrize("run", EXPLANATIONS)
def test_the_two_exceptions_come_out_with_one_change_each(run):
    original = next(r for r in RUNS if r.name == run.name.partition(",")[0])
    assert scientific(run_flops(run)) == run.train
    assert scientific(run_flops(original)) != run.train


def test_half_size_generator_gives_every_fraction_of_electra_small_in_table_5_3():
    whole = run_flops(EXPLANATIONS[0])
    parts = [scientific(whole / 2**n) for n in range(5)]
    assert parts == ["1.4e18", "7.1e17", "3.6e17", "1.8e17", "8.9e16"]


def test_published_models_of_other_authors():
    # GPT reads its 40,000 word pieces out at every position: 960,800 steps of 128.
    gpt = {**PRESETS["base"]["discriminator"], "vocabulary_size": 40_000}
    assert scientific(flops.inference_flops(gpt, 128)) == "3.0e10"
    forward = flops.encoder_flops(gpt, 512, training=True)
    forward += flops.masked_lm_head_flops(gpt, 512)
    assert scientific(flops.training_flops(forward, 128, 960_800)) == "4.0e19"
    # BERT-Large, and RoBERTa-500K with its own vocabulary (table 5.4).
    bert = flops.masked_lm_flops(MASKED_LM["large"], 512)
    assert scientific(flops.training_flops(bert, 256, 1_000_000)) == "1.9e20"
    encoder = {**MASKED_LM["large"]["encoder"], "vocabulary_size": 50_265}
    roberta = flops.masked_lm_flops({"encoder": encoder, "mask_rate": 0.15}, 512)
    assert scientific(flops.training_flops(roberta, 8_000, 500_000)) == "3.2e21"


# --- Against a program whose operations a compiler counts ---


def dense(x, inputs, outputs):
    return x @ jnp.ones((inputs, outputs)) + jnp.ones(outputs)


def layer_norm(x):
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-12)
    return x * jnp.ones(x.shape[-1]) + jnp.ones(x.shape[-1])


def gelu(x):
    return 0.5 * x * (1 + jnp.tanh(0.8 * (x + 0.045 * (x * x * x))))


def softmax(x):
    x = jnp.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def embed(tokens, positions, segments):
    size, hidden = ENCODER["embedding_size"], ENCODER["hidden_size"]
    x = sum(
        one_hot @ jnp.ones((one_hot.shape[-1], size))
        for one_hot in (tokens, positions, segments)
    )
    return dense(layer_norm(x), size, hidden)


def transformer_layer(x, mask):
    hidden, inner = ENCODER["hidden_size"], ENCODER["intermediate_size"]
    heads = ENCODER["num_heads"]
    query, key, value = (
        dense(x, hidden, hidden).reshape(LENGTH, heads, -1).swapaxes(0, 1)
        for _ in range(3)
    )
    logits = jnp.where(mask, query @ key.swapaxes(1, 2) * 0.25, -1e9)
    context = (softmax(logits) @ value).swapaxes(0, 1).reshape(LENGTH, hidden)
    x = layer_norm(x + dense(context, hidden, hidden))
    return layer_norm(x + dense(gelu(dense(x, hidden, inner)), inner, hidden))


def masked_lm_head(x, target):
    hidden, size = ENCODER["hidden_size"], ENCODER["embedding_size"]
    x = layer_norm(gelu(dense(x, hidden, size)))
    probabilities = softmax(dense(x, size, ENCODER["vocabulary_size"]))
    return (probabilities * target).sum(-1)


def mws_head(x, candidates):
    hidden, size = ENCODER["hidden_size"], ENCODER["embedding_size"]
    x = layer_norm(gelu(dense(x, hidden, size)))
    embeddings = candidates @ jnp.ones((ENCODER["vocabulary_size"], size))
    return softmax((embeddings * x[:, None]).sum(-1))


def rtd_head(x):
    hidden = ENCODER["hidden_size"]
    logits = dense(gelu(dense(x, hidden, hidden)), hidden, 1)
    return 1 / (1 + jnp.exp(-logits))


def counted(function, *shapes):
    arguments = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    cost = jax.jit(function).lower(*arguments).cost_analysis()
    return cost["flops"] + cost["transcendentals"]


HIDDEN = (LENGTH, ENCODER["hidden_size"])


@pytest.mark.parametrize(
    "ours, program, shapes",
    [
        (
            flops.embedding_flops(ENCODER, LENGTH),
            embed,
            [(LENGTH, ENCODER["vocabulary_size"]), (LENGTH, LENGTH), (LENGTH, 2)],
        ),
        (
            flops.transformer_layer_flops(ENCODER, LENGTH),
            transformer_layer,
            [HIDDEN, (LENGTH, LENGTH)],
        ),
        (
            flops.masked_lm_head_flops(ENCODER, 5),
            masked_lm_head,
            [(5, ENCODER["hidden_size"]), (5, ENCODER["vocabulary_size"])],
        ),
        (flops.rtd_head_flops(ENCODER, LENGTH), rtd_head, [HIDDEN]),
        (
            flops.mws_head_flops(ENCODER, 5, 6),
            mws_head,
            [(5, ENCODER["hidden_size"]), (5, 6, ENCODER["vocabulary_size"])],
        ),
    ],
    ids=["embeddings", "transformer layer", "masked LM head", "RTD head", "MWS head"],
)
def test_a_compiler_counts_the_same(ours, program, shapes):
    assert ours == pytest.approx(counted(program, *shapes), rel=0.005)


# --- Composition ---


def test_electra_is_the_sum_of_its_parts():
    preset = PRESETS["small"]
    discriminator = preset["discriminator"]
    generator = {
        **discriminator,
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_heads": 1,
    }
    expected = (
        flops.encoder_flops(discriminator, 128, training=True)
        + flops.rtd_head_flops(discriminator, 128)
        + flops.encoder_flops(generator, 128, training=True)
        + flops.masked_lm_head_flops(generator, 20)  # ceil(0.15 * 128)
    )
    assert flops.electra_flops(preset, 128) == expected


@pytest.mark.parametrize("options, task_layers", [({}, 1), ({"task_layers": 0}, 0)])
def test_teams_is_the_sum_of_its_parts(options, task_layers):
    preset = {**TEAMS["small"], **options}
    discriminator = preset["discriminator"]
    layer = flops.transformer_layer_flops(discriminator, 512, training=True)
    expected = (
        2 * flops.embedding_flops(discriminator, 512, training=True)
        + (6 + 12 + task_layers) * layer
        + flops.masked_lm_head_flops(discriminator, 77)  # ceil(0.15 * 512)
        + flops.rtd_head_flops(discriminator, 512)
        + flops.mws_head_flops(discriminator, 77, 6)
    )
    assert flops.teams_flops(preset, 512) == expected


def test_dropout_costs_four_operations_for_each_dropped_number():
    per_layer = 2 * LENGTH * 32 + 4 * LENGTH * LENGTH  # Outputs and attention.
    dropped = LENGTH * 16 + 2 * per_layer
    extra = flops.encoder_flops(ENCODER, LENGTH, training=True)
    extra -= flops.encoder_flops(ENCODER, LENGTH)
    assert extra == 4 * dropped


def test_training_is_forward_and_as_much_backward():
    assert flops.training_flops(10, batch_size=3, steps=7) == 420


@pytest.mark.parametrize("length", [0, 41])
def test_length_out_of_range(length):
    with pytest.raises(ValueError, match=f"`length`.*40.*length={length}"):
        flops.encoder_flops(ENCODER, length)


def test_a_generator_must_be_completed():
    with pytest.raises(ValueError, match="vocabulary_size.*complete_generator"):
        flops.encoder_flops(PRESETS["small"]["generator"], 128)
