"""Checkpoints of Model Garden's own models, and ours read by its encoders."""

import numpy as np
import pytest
import tensorflow as tf
from official.nlp.configs import bert, electra, encoders
from official.nlp.modeling import networks
from official.nlp.tasks import electra_task, masked_lm
from official.projects.teams import teams, teams_task

from keras_corrupt import models
from keras_corrupt.models import Electra, MaskedLM, Teams
from tests.conftest import SIZES, make_inputs
from tests.convert.conftest import (
    assert_close,
    assert_same_weights,
    scrambled,
    written,
)

POSITIONS = np.array([[1, 5, 7]] * 6, "int32")


def sizes(num_layers=2, **changed):
    return encoders.BertEncoderConfig(
        **{
            **{"vocab_size": 110, "embedding_size": 12, "hidden_size": 16},
            **{"num_attention_heads": 2, "intermediate_size": 24},
            **{"max_position_embeddings": 24, "type_vocab_size": 2},
            "num_layers": num_layers,
            **changed,
        }
    )


def encoder(*args, **kwargs):
    return encoders.EncoderConfig(type="bert", bert=sizes(*args, **kwargs))


def theirs_of(inputs):
    return {
        "input_word_ids": inputs["token_ids"],
        "input_mask": inputs["padding_mask"],
        "input_type_ids": inputs["segment_ids"],
        "masked_lm_positions": POSITIONS,
        "masked_lm_ids": np.take_along_axis(inputs["token_ids"], POSITIONS, 1),
        "masked_lm_weights": np.ones(POSITIONS.shape, "float32"),
    }


def saved(task, folder):
    """Makes a model, and its checkpoint as a training of theirs writes it."""
    model = task.build_model()
    inputs = make_inputs()
    model(theirs_of(inputs))  # makes the variables
    scrambled(model)
    optimizer = tf.keras.optimizers.Adam()
    checkpoint = tf.train.Checkpoint(
        model=model, optimizer=optimizer, **model.checkpoint_items
    )
    checkpoint.save(str(folder / "ckpt"))
    return model, inputs, model(theirs_of(inputs))


def test_bert_is_read(tmp_path):
    config = bert.PretrainerConfig(encoder=encoder(), mlm_activation="gelu")
    task = masked_lm.MaskedLMTask(masked_lm.MaskedLMConfig(model=config))
    _, inputs, made = saved(task, tmp_path)
    model = MaskedLM.from_preset(tmp_path)
    np.testing.assert_allclose(
        model.network(inputs, POSITIONS), made["mlm_logits"], atol=1e-5
    )


def test_electra_is_read(tmp_path):
    config = electra.ElectraPretrainerConfig(
        num_masked_tokens=3,
        generator_encoder=encoder(1, hidden_size=8),
        discriminator_encoder=encoder(),
        tie_embeddings=True,
    )
    task = electra_task.ElectraPretrainTask(
        electra_task.ElectraPretrainConfig(model=config)
    )
    theirs, inputs, made = saved(task, tmp_path)
    model = Electra.from_preset(tmp_path / "ckpt-1")
    assert model.tied_embeddings == "token"
    np.testing.assert_allclose(
        model.generator(inputs, POSITIONS), made["lm_outputs"], atol=1e-5
    )
    hidden = theirs.discriminator_network(theirs_of(inputs))["sequence_output"]
    logits = theirs.discriminator_head(theirs.discriminator_projection(hidden))
    assert_close(model.discriminator(inputs), logits[..., 0], inputs)


def test_teams_is_read(tmp_path):
    config = teams.TeamsPretrainerConfig(
        candidate_size=6,
        num_shared_generator_hidden_layers=1,
        num_discriminator_task_agnostic_layers=2,
        generator=sizes(2),
        discriminator=sizes(3),
    )
    task = teams_task.TeamsPretrainTask(
        teams_task.TeamsPretrainTaskConfig(model=config)
    )
    theirs, inputs, made = saved(task, tmp_path)
    model = Teams.from_preset(tmp_path)
    assert (model.task_layers, model.tied_layers) == (1, "half")
    np.testing.assert_allclose(
        model.generator(inputs, POSITIONS), made["lm_outputs"], atol=1e-5
    )
    hidden = theirs.discriminator_mws_network(theirs_of(inputs))
    assert_close(model.encoder(inputs), hidden["sequence_output"], inputs)
    candidates = np.random.default_rng(0).integers(5, 50, (6, 3, 6)).astype("int32")
    rtd, mws = model.discriminator.both_tasks(inputs, POSITIONS, candidates)
    common = hidden["encoder_outputs"][1]
    expected = theirs.discriminator_rtd_head(common, inputs["padding_mask"])
    assert_close(rtd, np.reshape(expected, rtd.shape), inputs)
    expected = theirs.discriminator_mws_head(
        hidden["sequence_output"], *map(tf.constant, (POSITIONS, candidates))
    )
    np.testing.assert_allclose(mws, expected, atol=1e-5)


@pytest.mark.parametrize("version", [1, 2])
def test_their_encoder_reads_ours(version, tokenizer, tmp_path):
    ours = SIZES["discriminator"] | {"vocabulary_size": 60, "approximate_gelu": True}
    model = MaskedLM(ours, tokenizer=tokenizer)
    directory = written(model, tmp_path, "model_garden")
    cls = {1: networks.BertEncoder, 2: networks.BertEncoderV2}[version]
    theirs = cls(
        **{"vocab_size": 60, "embedding_width": 12, "hidden_size": 16},
        **{"num_layers": 1, "num_attention_heads": 2, "inner_dim": 32},
        **{"max_sequence_length": 24, "type_vocab_size": 2},
        **({"dict_outputs": True} if version == 1 else {}),
    )
    inputs = make_inputs()
    read = {n: v for n, v in theirs_of(inputs).items() if n.startswith("input")}
    theirs(read)
    status = tf.train.Checkpoint(encoder=theirs).read(str(directory / "encoder"))
    status.assert_existing_objects_matched()
    made = theirs(read)["sequence_output"]
    assert_close(made, model.encoder(inputs), inputs)
    with pytest.warns(UserWarning, match="head on it is new"):
        back = models.load_preset(directory)
    assert_same_weights(model.encoder, back.encoder)
    assert back.tokenizer.fingerprint == tokenizer.fingerprint
