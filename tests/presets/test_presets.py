import json
import os
import subprocess
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models import (
    Electra,
    MaskedLM,
    Teams,
    UnigramElectra,
    load_preset,
)
from keras_corrupt.models.electra import PRESETS
from keras_corrupt.presets import sizes as preset_sizes
from keras_corrupt.presets import weights
from keras_corrupt.tokenizers import WordPieceTokenizer
from tests.conftest import MODERN


def same_outputs(a, b, inputs):
    discriminators = [np.array(m.discriminator(inputs)) for m in (a, b)]
    np.testing.assert_array_equal(*discriminators)
    positions = np.tile(np.array([[1, 3]], "int32"), (6, 1))
    generators = [np.array(m.generator(inputs, positions)) for m in (a, b)]
    np.testing.assert_array_equal(*generators)


def scrambled(model):
    for v in model.trainable_variables:
        v.assign(v + keras.random.normal(v.shape, stddev=0.1))
    return model


def test_preset_round_trip_with_both_networks(tmp_path, sizes, inputs, tokenizer):
    sizes["discriminator"] |= {"vocabulary_size": 60}
    model = scrambled(Electra(**sizes, mask_rate=0.2, tokenizer=tokenizer))
    model.save_to_preset(tmp_path / "preset")
    assert (tmp_path / "preset" / "generator" / "model.safetensors").exists()
    assert (tmp_path / "preset" / "discriminator" / "model.safetensors").exists()
    loaded = Electra.from_preset(tmp_path / "preset")
    assert loaded.get_config() == model.get_config()
    assert loaded.tokenizer.fingerprint == tokenizer.fingerprint
    same_outputs(model, loaded, inputs)
    changed = Electra.from_preset(tmp_path / "preset", mask_rate=0.3)
    assert changed.masker.mask_rate == 0.3


def test_all_who_may_read_one_file_may_read_all(tmp_path, sizes):
    Electra(**sizes).save_to_preset(tmp_path / "preset")
    files = [path for path in (tmp_path / "preset").rglob("*") if path.is_file()]
    assert len({path.stat().st_mode for path in files}) == 1 and len(files) > 2


def test_keras_file_round_trip(tmp_path, sizes, inputs):
    model = scrambled(Electra(**sizes))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    same_outputs(model, loaded, inputs)
    shared = loaded.generator.encoder.embeddings.token
    assert shared is loaded.discriminator.encoder.embeddings.token


def test_overrides_merge_into_a_named_preset():
    model = Electra.from_preset("tiny", discriminator={"num_layers": 1}, mask_rate=0.2)
    assert model.encoder.num_layers == 1
    assert model.encoder.hidden_size == 128
    assert PRESETS["tiny"]["discriminator"]["num_layers"] == 2  # not changed itself


def test_unknown_preset_lists_the_known():
    with pytest.raises(ValueError, match="base.*large.*small.*tiny"):
        Electra.from_preset("huge")


def test_a_preset_of_another_class_is_refused(tmp_path, sizes):
    Electra(**sizes).save_to_preset(tmp_path / "p")
    with pytest.raises(ValueError, match="preset of Electra"):
        MaskedLM.from_preset(tmp_path / "p")


def test_only_a_preset_is_overwritten(tmp_path, sizes, inputs):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter1.tex").write_text("years of work")
    model = Electra(**sizes)
    with pytest.raises(ValueError, match="not a directory that save_to_preset"):
        model.save_to_preset(folder)
    assert (folder / "chapter1.tex").read_text() == "years of work"
    model.save_to_preset(tmp_path / "p")
    scrambled(model).save_to_preset(tmp_path / "p")
    same_outputs(model, Electra.from_preset(tmp_path / "p"), inputs)
    assert {path.name for path in tmp_path.iterdir()} == {"thesis", "p"}


def test_a_link_is_not_replaced_but_what_it_points_at(tmp_path, sizes, monkeypatch):
    model = Electra(**sizes)
    model.save_to_preset(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    scrambled(model).save_to_preset(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"link", "real"}
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    model.save_to_preset(".")
    for name in ("real", "here"):
        loaded = Electra.from_preset(tmp_path / name)
        for a, b in zip(model.get_weights(), loaded.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)


def test_precisions_that_cannot_hold_the_weights(tmp_path, sizes):
    model = UnigramElectra(sizes["discriminator"], mask_id=4, unmaskable_ids=(0, 2, 3))
    counts = np.full(50, 10**6)
    model.use_unigrams(counts)
    with pytest.raises(ValueError, match="`dtype` must be a type of floats; got"):
        model.save_to_preset(tmp_path / "p", dtype="int32")
    assert not (tmp_path / "p").exists()
    model.save_to_preset(tmp_path / "p", dtype="float16")
    loaded = UnigramElectra.from_preset(tmp_path / "p")
    assert 10**6 in [np.array(v).max() for v in loaded.weights]  # not infinity
    kernel = np.array(loaded.trainable_variables[0])
    np.testing.assert_array_equal(kernel, kernel.astype("float16"))


def test_a_wrong_argument_is_not_the_presets_fault(tmp_path, sizes):
    Electra(**sizes).save_to_preset(tmp_path / "p")
    with pytest.raises(ValueError, match="Leave out what does not fit, of mask_rate"):
        Electra.from_preset(tmp_path / "p", mask_rate=2)
    with pytest.raises(ValueError, match="no argument 'mask_ratee'. It has mask_rate"):
        Electra.from_preset(tmp_path / "p", mask_ratee=0.2)


def test_a_failed_save_leaves_the_old_preset(tmp_path, sizes, inputs, monkeypatch):
    model = Electra(**sizes)
    model.save_to_preset(tmp_path / "p")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    other = scrambled(Electra(**sizes))
    monkeypatch.setattr(weights, "serialize", full)
    with pytest.raises(OSError):
        other.save_to_preset(tmp_path / "p")
    monkeypatch.undo()
    same_outputs(model, Electra.from_preset(tmp_path / "p"), inputs)
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


class TestHostile:
    """Somebody else's preset runs nothing and reads nothing outside itself."""

    @pytest.fixture
    def preset(self, tmp_path, sizes):
        Electra(**sizes).save_to_preset(tmp_path / "p")
        return tmp_path / "p"

    def test_config_cannot_name_code(self, preset, tmp_path):
        path = preset / "config.json"
        content = json.loads(path.read_text())
        marker = tmp_path / "executed"
        content["class"] = "Electra"
        content["module"] = "os"
        content["config"]["discriminator"] = {
            "class_name": "__lambda__",
            "config": {"code": f"open({str(marker)!r}, 'w')"},
        }
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match="config.json"):
            Electra.from_preset(preset)
        assert not marker.exists()

    def test_pickled_weights_are_not_loaded(self, preset, tmp_path):
        import os
        import pickle

        marker = tmp_path / "executed"

        class Hostile:
            def __reduce__(self):
                return os.mkdir, (str(marker),)

        path = preset / "discriminator" / "model.safetensors"
        path.write_bytes(pickle.dumps(Hostile()))
        with pytest.raises(ValueError, match="model.safetensors"):
            Electra.from_preset(preset)
        assert not marker.exists()

    def test_weights_of_another_size_are_named(self, preset, tmp_path, sizes):
        sizes["generator"] |= {"hidden_size": 4}
        Electra(**sizes).save_to_preset(tmp_path / "q")
        source = tmp_path / "q" / "generator" / "model.safetensors"
        source.rename(preset / "generator" / "model.safetensors")
        with pytest.raises(ValueError, match="generator.*has the shape"):
            Electra.from_preset(preset)

    def test_keras_file_with_a_lambda_is_refused(self, tmp_path):
        model = keras.Sequential([keras.Input((1,)), keras.layers.Lambda(lambda x: x)])
        model.save(tmp_path / "hostile.keras")
        with pytest.raises(ValueError, match="[Ll]ambda"):
            keras.saving.load_model(tmp_path / "hostile.keras")


class TestReplacement:
    """A preset is at its path, whole, whenever the process that replaces it ends."""

    @pytest.fixture
    def process_that_ended(self):
        process = subprocess.Popen(["true"])
        process.wait()
        return process.pid

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_a_rename_that_fails(self, number, tmp_path, sizes, monkeypatch):
        Electra(**sizes, mask_rate=0.2).save_to_preset(tmp_path / "p")
        rename, calls = Path.rename, []

        def failing(path, target):
            calls.append(path)
            if len(calls) == number:
                raise OSError(5, "Input/output error")
            return rename(path, target)

        monkeypatch.setattr(Path, "rename", failing)
        with pytest.raises(OSError):
            Electra(**sizes, mask_rate=0.3).save_to_preset(tmp_path / "p")
        monkeypatch.undo()
        expected = 0.3 if number == 3 else 0.2
        assert Electra.from_preset(tmp_path / "p").masker.mask_rate == expected
        Electra(**sizes).save_to_preset(tmp_path / "p")
        assert [path.name for path in tmp_path.iterdir()] == ["p"]

    def test_killed_between_two_renames(self, tmp_path, sizes, process_that_ended):
        preset = tmp_path / "p"
        Electra(**sizes).save_to_preset(preset)
        old = tmp_path / f".p.{process_that_ended}.old"
        for load in (Electra.from_preset, load_preset):
            preset.rename(old)
            load(preset)
            assert [path.name for path in tmp_path.iterdir()] == ["p"]
        preset.rename(old)
        Electra(**sizes).save_to_preset(preset)
        assert [path.name for path in tmp_path.iterdir()] == ["p"]

    def test_what_a_kill_left_goes_with_the_next_save(
        self, tmp_path, sizes, process_that_ended
    ):
        Electra(**sizes).save_to_preset(tmp_path / "p")
        other = f".p.{os.getppid()}.tmp"  # of a process that runs
        for name in (f".p.{process_that_ended}.tmp", f".p.{process_that_ended}.old"):
            (tmp_path / name / "generator").mkdir(parents=True)
        mine = f".p.q.{process_that_ended}.tmp"  # of a preset p.q
        for name in (other, mine):
            (tmp_path / name).mkdir()
        Electra(**sizes).save_to_preset(tmp_path / "p")
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"p", other, mine}
        Electra.from_preset(tmp_path / "p")


def test_a_tokenizer_of_another_preset_is_refused(tmp_path, sizes, tokenizer):
    sizes["discriminator"] |= {"vocabulary_size": 60}
    Electra(**sizes, tokenizer=tokenizer).save_to_preset(tmp_path / "p")
    words = tokenizer.vocabulary
    other = WordPieceTokenizer([*words[:-2], words[-1], words[-2]])
    other.save(tmp_path / "p")
    with pytest.raises(ValueError, match="tokenizer is not the one that it was saved"):
        Electra.from_preset(tmp_path / "p")


class TestSizes:
    """What a config describes is compared with what is saved, before it is made."""

    def test_a_layer_has_as_many_arrays_as_is_said(self, sizes):
        layer = Electra(**sizes).encoder.layers_[0]
        assert len(layer.weights) == preset_sizes.LAYER_ARRAYS

    @pytest.mark.parametrize("embedding_size", [None, 12])
    @pytest.mark.parametrize("buckets", [None, 8])
    def test_only_an_encoder_of_more_numbers_is_refused(
        self, sizes, embedding_size, buckets
    ):
        options = sizes["discriminator"] | {"embedding_size": embedding_size}
        if buckets:
            relative = {"num_buckets": buckets, "max_distance": 16}
            options["relative_positions"] = relative
        self.check_exactly(options)

    @pytest.mark.parametrize(
        "options",
        [
            {"positions": "rotary", "num_segments": 0, "use_bias": False},
            {"norm": "pre", "feed_forward": "geglu", "embedding_size": 12},
            {"norm": "pre", "feed_forward": "swiglu", "use_bias": False},
        ],
        ids=str,
    )
    def test_so_are_modern_encoders(self, sizes, options):
        self.check_exactly(sizes["discriminator"] | options)

    def check_exactly(self, options):
        numbers = TransformerEncoder(**options).count_params()
        config = {"encoder": options}
        preset_sizes.check_sizes(MaskedLM, config, arrays=1000, numbers=numbers)
        with pytest.raises(ValueError, match="encoder is larger"):
            preset_sizes.check_sizes(MaskedLM, config, arrays=1000, numbers=numbers - 1)

    def test_a_size_without_default_must_be_there(self, sizes):
        del sizes["discriminator"]["hidden_size"]
        config = {"encoder": sizes["discriminator"]}
        with pytest.raises(ValueError, match="`encoder` lacks hidden_size"):
            preset_sizes.check_sizes(MaskedLM, config, arrays=1000, numbers=10**9)

    @pytest.mark.parametrize("layers", [None, 0, 1, 2])
    def test_networks_of_other_depths_load(self, layers, tmp_path, sizes):
        if layers is None:
            sizes["generator"] |= {"num_layers": 5, "hidden_size": 4}
            model = Electra(**sizes)
        else:
            del sizes["generator"]
            sizes["discriminator"]["num_layers"] = 2
            model = Teams(**sizes, generator_layers=4, task_layers=layers)
        model.save_to_preset(tmp_path / "p")
        loaded = type(model).from_preset(tmp_path / "p")
        assert loaded.get_config() == model.get_config()
        for ours, theirs in zip(
            model.trainable_variables, loaded.trainable_variables, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)

    def test_too_large_ones_are_refused_at_once(self, tmp_path, sizes):
        del sizes["generator"]
        Teams(**sizes, generator_layers=2).save_to_preset(tmp_path / "t")
        path = tmp_path / "t" / "config.json"
        content = json.loads(path.read_text())
        content["config"]["generator_layers"] = 10**6
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match="config.json: generator_layers is larger"):
            Teams.from_preset(tmp_path / "t")

    @pytest.mark.parametrize(
        "change",
        [
            {"num_layers": 10**6},
            {"intermediate_size": 10**9},
            {"vocabulary_size": 10**9},
            {"positions": "learned", "max_length": 10**9},
            {"num_segments": 10**9},
        ],
    )
    def test_modern_ones_are_no_exception(self, change, tmp_path, sizes):
        sizes["discriminator"] |= MODERN
        Electra(**sizes).save_to_preset(tmp_path / "p")
        path = tmp_path / "p" / "config.json"
        content = json.loads(path.read_text())
        content["config"]["discriminator"] |= change
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match="discriminator is larger than the weight"):
            Electra.from_preset(tmp_path / "p")
