import pytest

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.encoders.cost import training_flops
from keras_corrupt.evaluation.thesis_tables import (
    EXPLANATIONS,
    RUNS,
    inference_flops,
    run_costs,
    scientific,
)
from keras_corrupt.heads import ReplacedTokenHead, VocabularyHead
from keras_corrupt.heads.multi_word_selection import MultiWordSelectionHead
from keras_corrupt.heads.sequence import SequenceHead
from keras_corrupt.models import CocoLM, Electra, MaskedLM, Teams
from keras_corrupt.models.weightless import weightless


@pytest.fixture(autouse=True)
def models_without_weights():
    with weightless():
        yield


def encoder(sizes, **options):
    return TransformerEncoder(**sizes | options)


# --- Against the thesis's printed numbers ---


@pytest.mark.parametrize("size, printed", [("small", "3.7e9"), ("base", "2.9e10")])
def test_inference_flops_are_table_5_3s(size, printed):
    sizes = Electra.presets[size]["discriminator"]
    assert scientific(inference_flops(sizes, 128)) == printed


COUNTED_OTHERWISE = ("ELECTRA-Small", "ELECTRA-400K")


@pytest.mark.parametrize(
    "run", [run for run in RUNS if run.name not in COUNTED_OTHERWISE]
)
def test_pretraining_flops_are_the_tables(run):
    assert scientific(run_costs(run)[1]) == run.train


@pytest.mark.parametrize("run", EXPLANATIONS)
def test_the_two_exceptions_come_out_with_one_change_each(run):
    original = next(r for r in RUNS if r.name == run.name.partition(",")[0])
    assert scientific(run_costs(run)[1]) == run.train
    assert scientific(run_costs(original)[1]) != run.train


def test_half_size_generator_gives_every_fraction_of_electra_small_in_table_5_3():
    _, whole = run_costs(EXPLANATIONS[0])
    parts = [scientific(whole / 2**n) for n in range(5)]
    assert parts == ["1.4e18", "7.1e17", "3.6e17", "1.8e17", "8.9e16"]


def test_published_models_of_other_authors():
    # GPT reads its 40,000 word pieces out at every position: 960,800 steps of 128.
    sizes = Electra.presets["base"]["discriminator"] | {"vocabulary_size": 40_000}
    assert scientific(inference_flops(sizes, 128)) == "3.0e10"
    gpt = encoder(sizes)
    forward = gpt.flops(512, training=True) + VocabularyHead(gpt).flops(512)
    assert scientific(training_flops(forward, 128, 960_800)) == "4.0e19"
    # BERT-Large, and RoBERTa-500K with its own vocabulary (table 5.4).
    bert = MaskedLM.from_preset("large").forward_flops(512)
    assert scientific(training_flops(bert, 256, 1_000_000)) == "1.9e20"
    roberta = MaskedLM.from_preset(
        "large", encoder={"vocabulary_size": 50_265}, mask_rate=0.15
    )
    forward = roberta.forward_flops(512)
    assert scientific(training_flops(forward, 8_000, 500_000)) == "3.2e21"


# --- Composition ---


def test_electra_is_the_sum_of_its_parts():
    sizes = Electra.presets["small"]["discriminator"]
    discriminator = encoder(sizes)
    generator = encoder(sizes, hidden_size=64, intermediate_size=256, num_heads=1)
    expected = (
        discriminator.flops(128, training=True)
        + ReplacedTokenHead(discriminator).flops(128)
        + generator.flops(128, training=True)
        + VocabularyHead(generator).flops(20)  # ceil(0.15 * 128)
    )
    assert Electra.from_preset("small").forward_flops(128) == expected


@pytest.mark.parametrize("options, task_layers", [({}, 1), ({"task_layers": 0}, 0)])
def test_teams_is_the_sum_of_its_parts(options, task_layers):
    main = encoder(Teams.presets["small"]["discriminator"])
    layer = main.layers_[0].flops(512, training=True)
    embeddings = main.flops(512, training=True) - 12 * layer
    expected = (
        2 * embeddings
        + (6 + 12 + task_layers) * layer
        + VocabularyHead(main).flops(77)  # ceil(0.15 * 512)
        + ReplacedTokenHead(main).flops(512)
        + MultiWordSelectionHead(main).flops(77, 6)
    )
    assert Teams.from_preset("small", **options).forward_flops(512) == expected


def test_teams_keeps_the_layers_of_both_tasks():
    one, three = (Teams.from_preset("small", task_layers=n) for n in (1, 3))
    extra = three.activation_bytes(8, 512) - one.activation_bytes(8, 512)
    layer = one.encoder.layers_[0]
    assert extra == 2 * layer.activation_bytes(8, 512, 4)


@pytest.mark.parametrize(
    "options, extra",
    [
        ({}, "crop"),  # 1 + ceil(0.9 * 511)
        ({"sequence_transform": True}, "transform"),
        ({"sequence_task": "none"}, ""),
        ({"sequence_task": "none", "token_task": "all_token_lm"}, "all"),
        ({"sequence_task": "none", "token_task": "rtd"}, "no head"),
        ({"sequence_task": "none", "replacements": "random"}, "no sampling"),
    ],
    ids=str,
)
def test_coco_lm_is_the_sum_of_its_parts(options, extra):
    sizes = CocoLM.presets["base"]["discriminator"]
    main, auxiliary = encoder(sizes), encoder(sizes, num_layers=4)
    head = VocabularyHead(main, transform=False)
    sampling = auxiliary.flops(512) + VocabularyHead(auxiliary).flops(77)
    expected = (
        auxiliary.flops(512, training=True)
        + VocabularyHead(auxiliary).flops(77)  # ceil(0.15 * 512)
        + sampling // 2  # it has no backward pass
        + main.flops(512, training=True)
        + 512 * (2 * 768 + 1 + 4)  # the copy mechanism's product, bias and sigmoid
        + head.flops(77)
    )
    crop = main.flops(461, training=True)
    expected += {
        "crop": crop,
        "transform": crop + 2 * SequenceHead(main).flops(),
        "": 0,
        "all": head.flops(512),
        "no head": -head.flops(77),
        "no sampling": -(sampling // 2),
    }[extra]
    assert CocoLM.from_preset("base", **options).forward_flops(512) == expected


def test_coco_lms_second_view_needs_memory_too():
    dtype = "mixed_bfloat16"
    alone, both = (
        CocoLM.from_preset("base", sequence_task=task, dtype=dtype)
        for task in ("none", "scl")
    )
    extra = both.activation_bytes(8, 512) - alone.activation_bytes(8, 512)
    assert extra == both.encoder.activation_bytes(8, 461, 2)


def test_training_is_forward_and_as_much_backward():
    assert training_flops(10, batch_size=3, steps=7) == 420
