import keras
import keras_hub
import pytest

from keras_corrupt.encoders.cost import encoder_parameters
from keras_corrupt.evaluation.thesis_tables import (
    RELEASED_PARAMETERS,
    SIZES,
    TABLE_5_1,
    preset_sizes,
)
from keras_corrupt.heads.cost import replaced_token_head_parameters
from keras_corrupt.models import CocoLM, Electra, MaskedLM, Teams
from keras_corrupt.models.coco_lm import cost as coco_lm
from keras_corrupt.models.coco_lm.presets import PRESETS as COCO_LM
from keras_corrupt.models.electra import cost as electra
from keras_corrupt.models.electra.presets import PRESETS, TIED_PARTS
from keras_corrupt.models.masked_lm import cost as masked_lm
from keras_corrupt.models.masked_lm.presets import PRESETS as MASKED_LM
from keras_corrupt.models.teams import cost as teams
from keras_corrupt.models.teams.presets import PRESETS as TEAMS


def test_presets_are_table_5_1():
    ours = [preset_sizes(PRESETS[size]) for size in SIZES]
    assert {name: tuple(sizes[name] for sizes in ours) for name in ours[0]} == TABLE_5_1


@pytest.mark.parametrize("size", SIZES)
def test_released_count_is_ours_and_a_pooler(size):
    encoder = PRESETS[size]["discriminator"]
    hidden = encoder["hidden_size"]
    ours = encoder_parameters(encoder)
    assert RELEASED_PARAMETERS[size] - ours == hidden * hidden + hidden
    head = replaced_token_head_parameters(encoder)
    assert ours + head - RELEASED_PARAMETERS[size] == hidden + 1


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
    ours = encoder_parameters(sizes)
    assert ours == backbone.count_params() - pooler


def trainable(*networks):
    # By identity: the networks hold shared variables in common.
    variables = {id(v): v for n in networks for v in n.trainable_variables}
    return sum(int(keras.ops.size(v)) for v in variables.values())


@pytest.mark.parametrize(
    "tied_embeddings", [t for t in TIED_PARTS if t != "everything"]
)
def test_electra_counts_its_variables(tied_embeddings):
    preset = {**PRESETS["tiny"], "tied_embeddings": tied_embeddings}
    model = Electra(**preset)
    counts = electra.parameters(preset)
    assert counts["discriminator"] == trainable(model.encoder)
    if tied_embeddings != "gradient_disentangled":
        assert counts["discriminator"] + counts["rtd_head"] == trainable(
            model.discriminator
        )
    assert counts["total"] == trainable(model.generator, model.discriminator)


@pytest.mark.parametrize("relative", [None, {"num_buckets": 8, "max_distance": 16}])
def test_electra_counts_one_encoder_where_all_weights_are_tied(relative):
    discriminator = {**PRESETS["tiny"]["discriminator"], "embedding_size": 32}
    discriminator["relative_positions"] = relative
    preset = {"discriminator": discriminator, "generator": {}}
    preset["tied_embeddings"] = "everything"
    model = Electra(**preset)
    counts = electra.parameters(preset)
    assert trainable(model.generator.encoder, model.encoder) == counts["discriminator"]
    assert counts["total"] == trainable(model.generator, model.discriminator)


def test_electra_counts_a_projection_where_widths_differ():
    sizes = {**PRESETS["tiny"]["discriminator"], "embedding_size": 32}
    preset = {**PRESETS["tiny"], "discriminator": sizes}
    model = Electra(**preset)
    counts = electra.parameters(preset)
    assert counts["discriminator"] == trainable(model.encoder)
    assert counts["total"] == trainable(model.generator, model.discriminator)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"token_task": "rtd"},
        {"tied_embeddings": "none"},
        {"tied_embeddings": "all", "sequence_transform": True},
    ],
    ids=str,
)
def test_coco_lm_counts_its_variables(options):
    preset = {**COCO_LM["tiny"], **options}
    model = CocoLM(**preset)
    counts = coco_lm.parameters(preset)
    assert counts["discriminator"] == trainable(model.encoder)
    heads = ("rtd_head", "vocabulary_head", "sequence_head")
    of_discriminator = ("discriminator", *heads)
    assert sum(counts[name] for name in of_discriminator) == trainable(
        model.discriminator
    )
    assert counts["total"] == trainable(model.generator, model.discriminator)


@pytest.mark.parametrize(
    "size, printed", [("base", 110), ("base_plus_plus", 134), ("large_plus_plus", 367)]
)
def test_coco_lms_encoders_have_the_parameters_of_table_1(size, printed):
    counts = coco_lm.parameters(COCO_LM[size])
    assert counts["discriminator"] / 1e6 == pytest.approx(printed, abs=1.4)


@pytest.mark.parametrize(
    "options, tied_layers",
    [({}, None), ({"tied_layers": "all", "task_layers": 2}, 2)],
    ids=str,
)
def test_teams_counts_its_variables(options, tied_layers):
    sizes = {**TEAMS["tiny"]["discriminator"], "embedding_size": 32}
    preset = {**TEAMS["tiny"], **options, "discriminator": sizes}
    model = Teams(**preset)
    counts = teams.parameters(preset, tied_layers)
    assert counts["discriminator"] == trainable(model.encoder)
    of_discriminator = ("discriminator", "rtd_layers", "rtd_head", "mws_head")
    assert sum(counts[name] for name in of_discriminator) == trainable(
        model.discriminator
    )
    assert counts["total"] == trainable(model.generator, model.discriminator)


def test_masked_lm_counts_its_variables():
    model = MaskedLM(**MASKED_LM["tiny"])
    counts = masked_lm.parameters(MASKED_LM["tiny"])
    assert counts["encoder"] == trainable(model.encoder)
    assert counts["total"] == trainable(model.network)


@pytest.mark.parametrize(
    "size, printed", [("small", 14), ("base", 110), ("large", 335)]
)
def test_teams_discriminators_have_the_parameters_of_table_1(size, printed):
    counts = teams.parameters(TEAMS[size])
    assert counts["discriminator"] / 1e6 == pytest.approx(printed, abs=1.2)
