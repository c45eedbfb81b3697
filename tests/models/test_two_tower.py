import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.downstream import TextClassifier
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import VocabularyHead
from keras_corrupt.models import TwoTower, load_preset
from keras_corrupt.models.sizes import ENCODERS
from keras_corrupt.models.two_tower import PRESETS
from keras_corrupt.models.weightless import weightless
from keras_corrupt.objectives.cloze import states_around
from keras_corrupt.training import AdamW
from tests.conftest import COMPILED, SIZES, make_inputs

ENCODER = {**SIZES["discriminator"], "initializer_range": 0.3}
IDS = {"mask_id": 4, "unmaskable_ids": (0, 2, 3)}


def make(**options):
    return TwoTower({**ENCODER, "dropout": 0.0, "attention_dropout": 0.0}, **IDS)


def logits_of(model, inputs):
    """Logits over the vocabulary at every position: the plain form."""
    batch, length = inputs["token_ids"].shape
    positions = np.tile(np.arange(length, dtype="int32"), (batch, 1))
    states = model.network.predict_on_batch(inputs)  # compiled
    return np.array(model.network.head(states, positions))


def test_states_around_are_the_neighbours():
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(2, 3, 7, 4)).astype("float32")
    lengths = [7, 4, 1]
    padding_mask = (np.arange(7) < np.array(lengths)[:, None]).astype("int32")
    found = np.array(states_around(before, after, padding_mask))
    assert found.shape == (3, 7, 8)
    for row, length in enumerate(lengths):
        for t in range(length):
            left = before[row, t - 1] if t else np.zeros(4)
            right = after[row, t + 1] if t + 1 < length else np.zeros(4)
            np.testing.assert_array_equal(found[row, t], np.append(left, right))


def test_no_position_knows_its_own_token():
    """And knows every other one: nothing leaks, and nothing is lost."""
    model = make()
    lengths = make_inputs()["padding_mask"].sum(1)
    assert lengths[0] == 20 > lengths.min()
    for row in (0, lengths.argmin()):
        length = lengths[row]
        inputs = {name: x[[row] * 20] for name, x in make_inputs().items()}
        assert 0 < inputs["segment_ids"][0].sum() < length
        diagonal = np.arange(length), np.arange(length)
        changed = {**inputs, "token_ids": inputs["token_ids"].copy()}
        changed["token_ids"][diagonal] = 49 - inputs["token_ids"][diagonal] % 40
        assert (changed["token_ids"] != inputs["token_ids"])[diagonal].all()
        # [changed token, position]
        moved = np.abs(logits_of(model, changed) - logits_of(model, inputs)).max(-1)
        moved = moved[:length, :length]
        own = np.eye(length, dtype=bool)
        assert moved[own].max() < 1e-5
        assert moved[~own].min() > 1e-3


def test_padding_plays_no_part():
    model, inputs = make(), make_inputs()
    wider = {name: np.pad(x, ((0, 0), (0, 4))) for name, x in inputs.items()}
    real = inputs["padding_mask"] == 1
    losses, again = (np.array(model(x)["cloze"].losses) for x in (inputs, wider))
    np.testing.assert_allclose(losses[real], again[:, :20][real], atol=1e-5)


def test_loss_is_the_mean_over_all_tokens_but_special_ones(inputs):
    model = make()
    model.compile(optimizer=AdamW(1e-3))
    loss = float(model.compute_loss(inputs, y_pred=model(inputs)))
    logits = logits_of(model, inputs).astype("float64")
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    ids = inputs["token_ids"]
    losses = -np.take_along_axis(logs, ids[..., None], -1)[..., 0]
    learned = ~np.isin(ids, [0, 2, 3])
    assert loss == pytest.approx(losses[learned].mean(), rel=1e-5)
    assert float(model.term_metrics["cloze"].result()) == pytest.approx(loss, rel=1e-6)


@pytest.mark.usefixtures("graphs")
def test_fit_learns_from_both_sides():
    """Each neighbour tells one bit of a token; with one side a bit is unknown."""
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 2, (2, 1024))
    ids = np.stack([left, 2 + 2 * left + right, 6 + right], axis=1).astype("int32") + 5
    sizes = {"hidden_size": 32, "dropout": 0.0, "attention_dropout": 0.0}
    model = TwoTower({**ENCODER, **sizes, "num_layers": 1}, **IDS)
    model.compile(optimizer=AdamW(1e-2), jit_compile=COMPILED)
    model.fit(ids, batch_size=128, epochs=10, verbose=0)
    losses = np.array(model(ids)["cloze"].losses).mean(0)
    assert losses.max() < 0.5 * np.log(2)


def test_towers_share_their_embeddings_alone():
    network = make().network
    left, right = network.left_to_right, network.right_to_left
    ids = [{id(v) for v in tower.trainable_variables} for tower in (left, right)]
    shared = {id(v) for v in left.embeddings.trainable_variables}
    assert ids[0] & ids[1] == shared and len(shared) == 5
    assert network.head.token is left.embeddings.token


@pytest.mark.parametrize("size", PRESETS)
def test_both_towers_together_have_electrics_size(size):
    tower, whole = PRESETS[size]["encoder"], ENCODERS[size]
    assert 2 * tower["num_layers"] == whole["num_layers"]
    assert {**tower, "num_layers": None} == {**whole, "num_layers": None}
    with weightless():
        network, encoder = TwoTower(tower).network, TransformerEncoder(**whole)
    hidden, embedding = whole["hidden_size"], whole["embedding_size"]
    more = (2 * hidden + 3) * embedding + whole["vocabulary_size"]  # the head
    if size == "small":  # each tower has a projection
        more += embedding * hidden + hidden
    assert network.count_params() == encoder.count_params() + more


def test_costs_are_those_of_the_parts():
    small, tower = make(), TransformerEncoder(**ENCODER)
    head = VocabularyHead(tower, hidden_size=32)
    expected = 2 * tower.flops(20, training=True) + head.flops(20)
    assert small.forward_flops(20) == expected
    towers = 2 * tower.activation_bytes(6, 20, 4)
    assert small.activation_bytes(6, 20) == towers + 2 * 6 * 16 * 50 * 4


def test_files_give_the_model_back(tmp_path, inputs):
    model = make()
    expected = np.array(model(inputs)["cloze"].losses)
    model.save_to_preset(tmp_path / "preset")
    model.save(tmp_path / "model.keras")
    for loaded in (
        load_preset(tmp_path / "preset"),
        keras.saving.load_model(tmp_path / "model.keras"),
    ):
        assert loaded.get_config() == model.get_config()
        found = np.array(loaded(inputs)["cloze"].losses)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_it_cannot_be_fine_tuned_and_says_so(tmp_path, tokenizer):
    model = TwoTower({**ENCODER, "vocabulary_size": 60}, tokenizer=tokenizer)
    assert model.padding_id == tokenizer.padding_id
    model.save_to_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match="no `encoder` to fine-tune.*Electric"):
        TextClassifier.from_preset(tmp_path / "preset", labels=["a", "b"])


def test_examples_show_what_was_expected(tokenizer):
    model = TwoTower({**ENCODER, "vocabulary_size": 60}, tokenizer=tokenizer)
    # A bias makes "sat" the likeliest token everywhere.
    bias = np.zeros(60)
    bias[tokenizer.vocabulary.index("sat")] = 1e3
    model.network.head.bias.assign(ops.convert_to_tensor(bias, "float32"))
    inputs = tokenizer.pack(["the cat sat on"], 24)
    assert model.describe_examples(inputs) == [
        "[CLS] [the: sat] [cat: sat] sat [on: sat] [SEP]"
    ]


@pytest.mark.parametrize("option", [{"mask_rate": 0.3}, {"masking": "span"}])
def test_masks_nothing(option):
    with pytest.raises(ValueError, match="masks nothing.*leave out"):
        TwoTower.from_preset("tiny", **option)
