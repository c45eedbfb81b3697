import pytest

from keras_corrupt.encoders.cost import (
    embedding_flops,
    encoder_activation_bytes,
    encoder_flops,
    transformer_layer_flops,
)
from keras_corrupt.evaluation.thesis_tables import (
    EXPLANATIONS,
    RUNS,
    run_flops,
    scientific,
)
from keras_corrupt.heads.cost import (
    replaced_token_head_flops,
    vocabulary_head_flops,
)
from keras_corrupt.models.coco_lm import cost as coco_lm
from keras_corrupt.models.coco_lm.presets import PRESETS as COCO_LM
from keras_corrupt.models.cost import training_flops
from keras_corrupt.models.electra import cost as electra
from keras_corrupt.models.electra.presets import PRESETS
from keras_corrupt.models.masked_lm import cost as masked_lm
from keras_corrupt.models.masked_lm.presets import PRESETS as MASKED_LM
from keras_corrupt.models.teams import cost as teams
from keras_corrupt.models.teams.presets import PRESETS as TEAMS

# --- Against the thesis's printed numbers ---


@pytest.mark.parametrize("size, printed", [("small", "3.7e9"), ("base", "2.9e10")])
def test_inference_flops_are_table_5_3s(size, printed):
    encoder = PRESETS[size]["discriminator"]
    assert scientific(electra.inference_flops(encoder, 128)) == printed


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
    assert scientific(electra.inference_flops(gpt, 128)) == "3.0e10"
    forward = encoder_flops(gpt, 512, training=True)
    forward += vocabulary_head_flops(gpt, 512)
    assert scientific(training_flops(forward, 128, 960_800)) == "4.0e19"
    # BERT-Large, and RoBERTa-500K with its own vocabulary (table 5.4).
    bert = masked_lm.forward_flops(MASKED_LM["large"], 512)
    assert scientific(training_flops(bert, 256, 1_000_000)) == "1.9e20"
    encoder = {**MASKED_LM["large"]["encoder"], "vocabulary_size": 50_265}
    roberta = masked_lm.forward_flops({"encoder": encoder, "mask_rate": 0.15}, 512)
    assert scientific(training_flops(roberta, 8_000, 500_000)) == "3.2e21"


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
        encoder_flops(discriminator, 128, training=True)
        + replaced_token_head_flops(discriminator, 128)
        + encoder_flops(generator, 128, training=True)
        + vocabulary_head_flops(generator, 20)  # ceil(0.15 * 128)
    )
    assert electra.forward_flops(preset, 128) == expected


@pytest.mark.parametrize("options, task_layers", [({}, 1), ({"task_layers": 0}, 0)])
def test_teams_is_the_sum_of_its_parts(options, task_layers):
    preset = {**TEAMS["small"], **options}
    discriminator = preset["discriminator"]
    layer = transformer_layer_flops(discriminator, 512, training=True)
    expected = (
        2 * embedding_flops(discriminator, 512, training=True)
        + (6 + 12 + task_layers) * layer
        + vocabulary_head_flops(discriminator, 77)  # ceil(0.15 * 512)
        + replaced_token_head_flops(discriminator, 512)
        + teams.selection_head_flops(discriminator, 77, 6)
    )
    assert teams.forward_flops(preset, 512) == expected


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
    preset = {**COCO_LM["base"], **options}
    main = preset["discriminator"]
    auxiliary = {**main, "num_layers": 4}
    head = vocabulary_head_flops(main, 77, transform=False)  # ceil(0.15 * 512)
    sampling = encoder_flops(auxiliary, 512) + vocabulary_head_flops(main, 77)
    expected = (
        encoder_flops(auxiliary, 512, training=True)
        + vocabulary_head_flops(main, 77)
        + sampling // 2  # it has no backward pass
        + encoder_flops(main, 512, training=True)
        + 512 * (2 * 768 + 1 + 4)  # the copy mechanism's product, bias and sigmoid
        + head
    )
    crop = encoder_flops(main, 461, training=True)
    transform = vocabulary_head_flops(main, 1)
    transform -= vocabulary_head_flops(main, 1, transform=False)
    expected += {
        "crop": crop,
        "transform": crop + 2 * transform,
        "": 0,
        "all": vocabulary_head_flops(main, 512, transform=False),
        "no head": -head,
        "no sampling": -(sampling // 2),
    }[extra]
    assert coco_lm.forward_flops(preset, 512) == expected


def test_coco_lms_second_view_needs_memory_too():
    alone, both = (
        coco_lm.activation_bytes({**COCO_LM["base"], "sequence_task": task}, 8, 512, 2)
        for task in ("none", "scl")
    )
    main = COCO_LM["base"]["discriminator"]
    assert both - alone == encoder_activation_bytes(main, 8, 461, 2)


def test_training_is_forward_and_as_much_backward():
    assert training_flops(10, batch_size=3, steps=7) == 420
