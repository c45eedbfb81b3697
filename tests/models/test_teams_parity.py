"""Ours equals Model Garden's TEAMS, as `fixtures/record_teams.py` recorded it."""

import functools
from pathlib import Path

import numpy as np
import pytest

from keras_corrupt.corruption import corrupters
from keras_corrupt.models import Teams, teams
from keras_corrupt.training import AdamW

RECORD = Path(__file__).parents[1] / "fixtures" / "teams.npz"


@pytest.fixture(scope="module")
def record():
    with np.load(RECORD, allow_pickle=False) as archive:
        return dict(archive)


def part(record, name):
    return {k.partition("/")[2]: v for k, v in record.items() if k.startswith(name)}


#: The record's names of what has moved since.
MOVED = {
    "discriminator.transform": "discriminator.head.transform",
    "discriminator.classifier": "discriminator.head.classifier",
    "generator.transform": "generator.head.transform",
    "generator.norm": "generator.head.norm",
    "generator.output_bias": "generator.head.bias",
}


def find(model, path):
    for old, new in MOVED.items():
        if path.startswith(old):
            path = path.replace(old, new)

    def step(owner, name):
        return owner[int(name)] if name.isdigit() else getattr(owner, name)

    return functools.reduce(step, path.split("."), model)


@pytest.fixture
def model(record, monkeypatch):
    sampled, candidates = record["sampled_ids"], record["outputs/candidate_ids"]
    monkeypatch.setattr(corrupters, "sample_tokens", lambda logits, seed: sampled)
    monkeypatch.setattr(teams, "sample_negatives", lambda *args: candidates[..., 1:])
    model = Teams(
        {
            "vocabulary_size": 40,
            "num_layers": 3,
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_heads": 2,
            "embedding_size": 8,
            "max_length": 12,
            "approximate_gelu": True,
        },
        generator_layers=2,
        mask_id=4,
        unmaskable_ids=(0, 2, 3),
    )
    left = {id(v) for v in model.trainable_variables}
    for path, value in part(record, "weights/").items():
        variable = find(model, path)
        variable.assign(value.reshape(variable.shape))
        left.remove(id(variable))
    # Theirs has no bias where the embeddings are taken to the hidden size; ours is 0.
    assert left == {id(model.encoder.embedding_projection.bias)}
    return model


def test_logits_and_losses_equal_model_gardens(model, record):
    model.compile(optimizer=AdamW(1e-3))
    inputs = part(record, "inputs/")
    outputs = model(inputs)
    real = inputs["masked_weights"] == 1
    ours_of = {
        "mlm_logits": outputs["mlm"].logits,
        "rtd_logits": outputs["rtd"].logits,
        "mws_logits": outputs["mws"].logits,
        "candidate_ids": outputs["mws"].candidate_ids,
        "corrupted_ids": outputs["corrupted"].token_ids,
        "masked_ids": outputs["mlm"].token_ids,
        "replaced": outputs["rtd"].replaced,
        "sampled_ids": outputs["corrupted"].sampled_ids,
    }
    for name, expected in part(record, "outputs/").items():
        ours = np.array(ours_of[name])
        if name in ("candidate_ids", "mws_logits"):
            # Theirs has no original token in a spare slot.
            ours, expected = ours[real], expected[real]
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4, err_msg=name)
    losses = part(record, "losses/")
    total = float(model.compute_loss(y_pred=outputs))
    assert total == pytest.approx(float(losses.pop("total")), rel=1e-4)
    metrics = {term: float(m.result()) for term, m in model.term_metrics.items()}
    for name, expected in losses.items():
        assert metrics[name] == pytest.approx(float(expected), rel=1e-4)
