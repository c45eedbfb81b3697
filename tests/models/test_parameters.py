import keras_hub
import pytest

from keras_corrupt.evaluation.thesis_tables import (
    RELEASED_PARAMETERS,
    SIZES,
    TABLE_5_1,
    parameters_by_part,
    preset_sizes,
)
from keras_corrupt.models import CocoLM, Electra, MaskedLM, Teams
from keras_corrupt.models.weightless import weightless
from tests.encoders.conftest import encoder_parameters

PRESETS = Electra.presets


@pytest.fixture(autouse=True)
def models_without_weights():
    with weightless():
        yield


def test_presets_are_table_5_1():
    ours = [preset_sizes(PRESETS[size]) for size in SIZES]
    assert {name: tuple(sizes[name] for sizes in ours) for name in ours[0]} == TABLE_5_1


@pytest.mark.parametrize("size", SIZES)
def test_released_count_is_ours_and_a_pooler(size):
    discriminator = Electra.from_preset(size).discriminator
    hidden = discriminator.encoder.hidden_size
    ours = discriminator.encoder.count_params()
    assert RELEASED_PARAMETERS[size] - ours == hidden * hidden + hidden
    assert discriminator.count_params() - RELEASED_PARAMETERS[size] == hidden + 1


def test_released_count_is_keras_hubs_backbone_with_its_pooler():
    sizes = PRESETS["small"]["discriminator"]
    backbone = keras_hub.models.ElectraBackbone(
        vocab_size=sizes["vocabulary_size"],
        num_layers=sizes["num_layers"],
        num_heads=sizes["num_heads"],
        hidden_dim=sizes["hidden_size"],
        embedding_dim=sizes["embedding_size"],
        intermediate_dim=sizes["intermediate_size"],
        max_sequence_length=sizes["max_length"],
    )
    assert backbone.count_params() == RELEASED_PARAMETERS["small"]
    pooler = backbone.get_layer("pooled_dense").count_params()
    ours = Electra.from_preset("small").encoder
    assert ours.count_params() == backbone.count_params() - pooler


def rtd_head(hidden):
    return hidden * hidden + hidden + hidden + 1


def masked_lm_head(hidden, embedding, vocabulary):
    return hidden * embedding + embedding + 2 * embedding + vocabulary


def by_part(model):
    """Returns a model's parameters, by part, counted by the package."""
    found = parameters_by_part(model.discriminator, model.generator)
    assert sum(found.values()) == model.count_params()
    return found


# Of `tiny`: 8192 tokens, 128 positions, hidden and embedding size 128 and 32.
TOKEN, POSITION, SEGMENT, NORM = 8192 * 128, 128 * 128, 2 * 128, 2 * 128


@pytest.mark.parametrize(
    "tied_embeddings, shared",
    [
        ("none", 0),
        ("token", TOKEN),
        ("token_and_position", TOKEN + POSITION),
        ("all", TOKEN + POSITION + SEGMENT + NORM),
    ],
)
def test_electra_counts_what_is_shared_once(tied_embeddings, shared):
    model = Electra.from_preset("tiny", tied_embeddings=tied_embeddings)
    sizes = PRESETS["tiny"]["discriminator"]
    generator = sizes | PRESETS["tiny"]["generator"]
    assert by_part(model) == {
        "discriminator/encoder": encoder_parameters(sizes),
        "discriminator/head": rtd_head(128),
        "generator/encoder": encoder_parameters(generator) - shared,
        "generator/head": masked_lm_head(32, 128, 8192),
    }


def test_disentangled_tables_have_differences():
    model = Electra.from_preset("tiny", tied_embeddings="gradient_disentangled")
    expected = encoder_parameters(PRESETS["tiny"]["discriminator"]) + TOKEN + POSITION
    assert by_part(model)["discriminator/encoder"] == expected


@pytest.mark.parametrize("relative", [None, {"num_buckets": 8, "max_distance": 16}])
def test_electra_counts_one_encoder_where_all_weights_are_tied(relative):
    sizes = {**PRESETS["tiny"]["discriminator"], "embedding_size": 32}
    sizes["relative_positions"] = relative
    found = by_part(Electra(sizes, {}, tied_embeddings="everything"))
    assert found["discriminator/encoder"] == encoder_parameters(sizes)
    assert found["generator/encoder"] == 0


@pytest.mark.parametrize(
    "options, parts",
    [
        ({}, {"vocabulary_head": 8192}),
        ({"token_task": "rtd"}, {}),
        ({"tied_embeddings": "none"}, {"vocabulary_head": 8192}),
        (
            {"tied_embeddings": "all", "sequence_transform": True},
            {"vocabulary_head": 8192, "sequence_head": 128 * 128 + 3 * 128},
        ),
    ],
    ids=str,
)
def test_coco_lm_counts_its_parts(options, parts):
    sizes = CocoLM.presets["tiny"]["discriminator"]
    main = encoder_parameters(sizes)
    shared = {"none": 0, "all": TOKEN + POSITION + SEGMENT + NORM}
    auxiliary = encoder_parameters(sizes | {"num_layers": 1})
    assert by_part(CocoLM.from_preset("tiny", **options)) == {
        "discriminator/encoder": main,
        "discriminator/head": 128 + 1,
        **{f"discriminator/{name}": count for name, count in parts.items()},
        "generator/encoder": auxiliary
        - shared.get(options.get("tied_embeddings"), TOKEN),
        "generator/head": masked_lm_head(128, 128, 8192),
    }


@pytest.mark.parametrize(
    "size, printed", [("base", 110), ("base_plus_plus", 134), ("large_plus_plus", 367)]
)
def test_coco_lms_encoders_have_the_parameters_of_table_1(size, printed):
    encoder = CocoLM.from_preset(size).encoder
    assert encoder.count_params() / 1e6 == pytest.approx(printed, abs=1.4)


@pytest.mark.parametrize(
    "options, task_layers, own_layers",
    [({}, 1, 1), ({"tied_layers": "all", "task_layers": 2}, 2, 0)],
    ids=str,
)
def test_teams_counts_its_parts(options, task_layers, own_layers):
    sizes = {**Teams.presets["tiny"]["discriminator"], "embedding_size": 32}
    layer = encoder_parameters(sizes)
    layer -= encoder_parameters(sizes | {"num_layers": 1})
    model = Teams.from_preset("tiny", discriminator={"embedding_size": 32}, **options)
    transform = 128 * 32 + 3 * 32
    assert by_part(model) == {
        "discriminator/encoder": encoder_parameters(sizes),
        "discriminator/head": rtd_head(128),
        "discriminator/rtd_encoder": task_layers * layer,
        "discriminator/selection_head": transform,
        "generator/encoder": own_layers * layer,
        "generator/head": transform + 8192,
    }


def test_masked_lm_counts_its_parts():
    model = MaskedLM.from_preset("tiny")
    assert parameters_by_part(model.network) == {
        "network/encoder": encoder_parameters(MaskedLM.presets["tiny"]["encoder"]),
        "network/head": masked_lm_head(128, 128, 8192),
    }


@pytest.mark.parametrize(
    "size, printed", [("small", 14), ("base", 110), ("large", 335)]
)
def test_teams_discriminators_have_the_parameters_of_table_1(size, printed):
    encoder = Teams.from_preset(size).encoder
    assert encoder.count_params() / 1e6 == pytest.approx(printed, abs=1.2)
