"""What Keras's users do with a model, beside the recipes."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.corruption import num_masked
from keras_corrupt.downstream import TextClassifier
from keras_corrupt.models import (
    CocoLM,
    Electra,
    MaskedLM,
    Teams,
    TwoTower,
)
from tests.conftest import COMPILED, SIZES, make_inputs

#: Where a step is not compiled, a few of them are faster without a graph.
COMPILING = {"jit_compile": COMPILED, "run_eagerly": not COMPILED}
IDS = {"mask_id": 4, "unmaskable_ids": (0, 2, 3)}
ENCODER = {**SIZES["discriminator"], "initializer_range": 0.2}
#: One for the vocabulary of the fixture `tokenizer`.
ENCODER_60 = {**ENCODER, "vocabulary_size": 60}


def masked_lm(**changes):
    model = MaskedLM({**ENCODER, **changes}, **IDS)
    model.compile(keras.optimizers.Adam(0.01), **COMPILING)
    return model


@pytest.fixture
def ids():
    return make_inputs()["token_ids"]


# === Inputs ===


@pytest.mark.parametrize("system", [CocoLM, Electra, MaskedLM, Teams])
def test_every_form_of_the_inputs_gives_the_same(system):
    model = system.from_preset("tiny")
    inputs = make_inputs()
    inputs["segment_ids"] *= 0
    encoded = np.array(model.encoder(inputs))
    for given in (
        inputs["token_ids"],
        {"token_ids": inputs["token_ids"].astype("int64")},
        {k: v.astype("int64") for k, v in inputs.items()},
    ):
        np.testing.assert_array_equal(np.array(model.encoder(given)), encoded)
        outputs = model(given)
        assert tuple(outputs["mlm"].logits.shape[:2]) == (6, 3)


def test_the_tokenizer_says_which_id_is_padding(tokenizer, tmp_path):
    """In the model, in its encoder alone, and in both when loaded."""
    tokenizer.padding_id = 7
    model = MaskedLM(ENCODER_60, tokenizer=tokenizer)
    assert model.padding_id == model.encoder.padding_id == 7
    assert MaskedLM.from_config(model.get_config()).padding_id == 7


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize(
    "system, masking",
    [(MaskedLM, "span"), (CocoLM, "whole_word"), (Teams, "token")],
)
def test_lengths_may_vary_from_batch_to_batch(system, masking, ids, tokenizer):
    import tensorflow as tf

    rest = {Teams: (2,), MaskedLM: (), TwoTower: (), CocoLM: ({},)}
    square = {"embedding_size": ENCODER_60["hidden_size"]} if system is CocoLM else {}
    sizes = ENCODER_60 | square, *rest.get(system, (SIZES["generator"],))
    model = system(*sizes, tokenizer=tokenizer, masking=masking)
    model.compile(keras.optimizers.Adam(0.01), jit_compile=COMPILED)
    rows = tf.data.Dataset.from_tensor_slices((ids, [9, 11, 10, 9, 20, 16]))
    batches = rows.map(lambda row, n: tf.cast(row[:n], tf.int64)).padded_batch(3)
    weights = [np.array(w) for w in model.trainable_variables]
    history = model.fit(batches, verbose=0).history
    generator_loss = history.get("mlm_loss") or history["cloze_loss"]
    assert np.isfinite(history["loss"]).all() and generator_loss[0] > 1
    moved = [
        np.abs(w - np.array(v)).max()
        for w, v in zip(weights, model.trainable_variables, strict=True)
    ]
    assert sum(m > 0 for m in moved) > len(moved) // 2


@pytest.mark.parametrize("rate", [0.15, 0.25, 0.4])
def test_an_unknown_length_has_as_many_slots_as_a_known_one(rate):
    lengths = np.arange(1, 513)
    slots = [int(num_masked(rate, ops.convert_to_tensor(n, "int32"))) for n in lengths]
    assert slots == [num_masked(rate, int(n)) for n in lengths]


def test_texts_are_refused_before_training():
    model = masked_lm()
    with pytest.raises(ValueError, match="token ids .*`tokenizer.pack.*Got a list"):
        model.fit(["A text.", "Another."])


# === The loss ===


def test_sample_weight_weights_the_mean(ids):
    """Keras drops weights that come without targets."""
    model = masked_lm()
    weights = np.array([0.0, 0.5, 0.2, 0.0, 0.0, 0.1], "float32")
    outputs = model(ids)
    values, masked = (np.array(x) for x in model.objectives["mlm"].loss(outputs))
    masked = masked * weights[:, None]
    loss = model.compute_loss({"sample_weight": weights}, y_pred=outputs)
    np.testing.assert_allclose(
        float(loss), (values * masked).sum() / masked.sum(), rtol=1e-5
    )
    one = (np.arange(6) == 2).astype("float32")
    seen = model.evaluate(ids, sample_weight=one, verbose=0, return_dict=True)
    assert seen["loss"] > 0
    none = model.evaluate(ids, sample_weight=0 * one, verbose=0, return_dict=True)
    assert none["loss"] == 0
    with pytest.raises(ValueError, match="one number for each sequence.*20"):
        model.compute_loss({"sample_weight": np.ones((6, 20))}, y_pred=outputs)


def test_what_has_no_meaning_is_refused(ids):
    model = masked_lm()
    with pytest.raises(ValueError, match="`class_weight` is of no use to MaskedLM"):
        model.fit(ids, class_weight={0: 1.0})
    with pytest.raises(ValueError, match="MaskedLM takes no targets"):
        model.compute_loss(ids, ids[:, 0], model(ids))


def test_losses_of_layers_are_added(ids, tokenizer):
    class Added(MaskedLM):
        def call(self, inputs, training=False):
            self.add_loss(ops.convert_to_tensor(3.0))
            return super().call(inputs, training)

    model = Added(ENCODER, **IDS)
    kernel = model.encoder.layers_[0].intermediate.kernel
    plain = float(model.compute_loss(ids, y_pred=MaskedLM.call(model, ids)))
    kernel.regularizer = keras.regularizers.L2(0.1)
    loss = float(model.compute_loss(ids, y_pred=(outputs := model(ids))))
    terms = [np.array(x) for x in model.objectives["mlm"].loss(outputs)]
    expected = np.average(terms[0], weights=terms[1])
    expected += 3 + 0.1 * np.square(np.array(kernel)).sum()
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert plain < loss - 3

    classifier = TextClassifier(ENCODER_60, tokenizer, labels=["a", "b"], dropout=0.0)
    targets = np.arange(6) % 2
    outputs = classifier(ids)
    plain = float(classifier.compute_loss(ids, targets, outputs))
    classifier.head.dense.kernel.regularizer = keras.regularizers.L2(0.1)
    squares = np.square(np.array(classifier.head.dense.kernel)).sum()
    loss = float(classifier.compute_loss(ids, targets, outputs))
    np.testing.assert_allclose(loss, plain + 0.1 * squares, rtol=1e-5)


# === Fine-tuned models ===


def test_a_classifier_fits_ids_and_labels(ids, tokenizer):
    def losses(**kwargs):
        keras.utils.set_random_seed(0)
        model = TextClassifier(
            ENCODER_60,
            tokenizer,
            labels=["a", "b"],
            dropout=0.0,
        )
        model.compile(keras.optimizers.Adam(0.01), **COMPILING)
        history = model.fit(ids, targets, verbose=0, epochs=4, **kwargs)
        return history.history["loss"]

    targets = np.array([0, 0, 0, 0, 1, 1])
    plain = losses()
    assert plain[-1] < plain[0]
    by_class = losses(class_weight={0: 0.0, 1: 1.0})
    by_row = losses(sample_weight=np.array([0, 0, 0, 0, 1.0, 1.0]))
    np.testing.assert_allclose(by_class, by_row, rtol=1e-4)
    assert abs(by_class[0] - plain[0]) > 1e-3


def test_a_fine_tuned_model_names_what_its_inputs_lack(ids, tokenizer):
    from keras_corrupt.downstream import TokenTagger

    tagger = TokenTagger(ENCODER_60, tokenizer, ["A", "B"])
    with pytest.raises(ValueError, match="TokenTagger reads word_starts beside"):
        tagger(ids)
    classifier = TextClassifier(ENCODER_60, tokenizer, labels=["a", "b"])
    with pytest.raises(ValueError, match="trains on pairs of inputs and targets"):
        classifier.compute_loss(ids, None, classifier(ids))


# === What Keras does to layers ===


def test_lora_and_freezing_leave_what_they_should(ids, tmp_path):
    model = masked_lm(num_layers=2)
    first, second = model.encoder.layers_
    first.attention.query.enable_lora(2)
    model.encoder.embeddings.token.enable_lora(2)
    second.trainable = False
    lora = first.attention.query.lora_kernel_b
    table = model.encoder.embeddings.token._embeddings
    kept = [first.attention.query._kernel, table, *second.weights]
    before = [np.array(v) for v in kept]
    other = np.array(first.intermediate.kernel)
    model.compile(keras.optimizers.Adam(0.01), **COMPILING)
    model.fit(ids, epochs=2, verbose=0)
    for variable, value in zip(kept, before, strict=True):
        np.testing.assert_array_equal(np.array(variable), value)
    assert np.abs(np.array(lora)).max() > 1e-3
    assert np.abs(np.array(first.intermediate.kernel) - other).max() > 1e-3

    with pytest.raises(ValueError, match="A preset has no place for LoRA"):
        model.save_to_preset(tmp_path / "preset")
    model.save(tmp_path / "model.keras")
    merged = keras.models.load_model(tmp_path / "model.keras")
    expected = np.array(model.encoder(ids))
    np.testing.assert_allclose(np.array(merged.encoder(ids)), expected, atol=1e-5)
    merged.save_to_preset(tmp_path / "preset")


def test_int8_predicts_nearly_the_same(ids, tmp_path):
    model = masked_lm()
    positions = np.tile(np.array([[1, 5, 7]], "int32"), (6, 1))
    logits = np.array(model.network(ids, positions))
    model.quantize("int8")
    assert model.encoder.embeddings.token.quantization_mode == "int8"
    quantized = np.array(model.network(ids, positions))
    assert 0 < np.abs(quantized - logits).max() < 0.1 * np.abs(logits).max()
    assert np.corrcoef(quantized.ravel(), logits.ravel())[0, 1] > 0.99
    for save in (model.save, model.save_to_preset, model.encoder.save):
        with pytest.raises(ValueError, match="quantized model cannot be saved"):
            save(tmp_path / "model.keras")
    assert not any(tmp_path.iterdir())


@pytest.mark.usefixtures("graphs")
def test_an_export_reads_any_length(tmp_path, ids):
    import tensorflow as tf

    model = masked_lm()
    model.encoder.export(tmp_path / "encoder", verbose=False)
    inputs = make_inputs()
    loaded = tf.saved_model.load(str(tmp_path / "encoder"))
    for length in (20, 10):
        part = {name: tf.constant(x[:, :length]) for name, x in inputs.items()}
        np.testing.assert_allclose(
            loaded.serve(part).numpy(), np.array(model.encoder(part)), atol=1e-5
        )
    model.export(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    assert loaded.serve(part)["mlm_logits"].shape == (6, 2, 50)


# === Presets ===


def test_the_users_precision_is_respected(tmp_path, tokenizer):
    model = MaskedLM(ENCODER_60, tokenizer=tokenizer)
    model.save_to_preset(tmp_path / "float32")
    half = MaskedLM.from_config({**model.get_config(), "dtype": "mixed_bfloat16"})
    half.save_to_preset(tmp_path / "half")
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        for loaded in (
            MaskedLM.from_preset("tiny"),
            MaskedLM.from_preset(tmp_path / "float32"),
            TextClassifier.from_preset(tmp_path / "float32", labels=["a", "b"]),
        ):
            assert loaded.encoder.layers_[0].compute_dtype == "bfloat16"
        chosen = MaskedLM.from_preset(tmp_path / "float32", dtype="float32")
        assert chosen.compute_dtype == "float32"
    finally:
        keras.config.set_dtype_policy("float32")
    assert MaskedLM.from_preset(tmp_path / "float32").compute_dtype == "float32"
    assert MaskedLM.from_preset(tmp_path / "half").compute_dtype == "bfloat16"


@pytest.mark.parametrize("system", [CocoLM, Electra, Teams])
def test_a_summary_has_the_shapes(system, capsys):
    system.from_preset("tiny").summary(line_length=100)
    lines = capsys.readouterr().out
    assert "?" not in lines
    assert "(None, None, 8192)" in lines and "(None, None)" in lines


@pytest.mark.parametrize("batch_size", [0, -1])
def test_score_refuses_batches_of_nothing(batch_size, tokenizer):
    model = Electra(ENCODER_60, SIZES["generator"], tokenizer=tokenizer)
    with pytest.raises(ValueError, match="`batch_size` must be 1 or more; got"):
        model.score(["the cat"], batch_size=batch_size)
    classifier = TextClassifier(ENCODER_60, tokenizer, labels=["a", "b"])
    with pytest.raises(ValueError, match="`batch_size` must be 1 or more; got"):
        classifier.predictions(["the cat"], batch_size=batch_size)
