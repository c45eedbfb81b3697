"""`--grow_vocabulary`: from a preset to a run with more pieces."""

import dataclasses

import numpy as np
import pytest

from keras_corrupt.models import Electra, load_preset
from keras_corrupt.tokenizers import ByteBPETokenizer, load
from keras_corrupt.training import main, pretrain

pytestmark = pytest.mark.usefixtures("presets")


@pytest.fixture(scope="module")
def domain(tmp_path_factory):
    path = tmp_path_factory.mktemp("domain") / "domain.txt"
    lines = ["rendolab gontimef rendolabs"] * 3
    path.write_text("\n\n".join("\n".join(lines) for _ in range(60)))
    return str(path)


def test_a_run_with_a_grown_vocabulary(config, finished, domain, monkeypatch):
    preset = finished.directory / "preset"
    old = load_preset(preset)
    config = dataclasses.replace(
        config,
        data=None,
        corpus=(domain,),
        init_from=str(preset),
        grow_vocabulary=3,
        validation_fraction=0.2,
        workers=1,
        steps=3,
    )
    starts, fit = [], Electra.fit

    def spied(self, *args, **kwargs):
        starts.append(np.array(self.encoder.embeddings.token.embeddings))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(Electra, "fit", spied)
    model = pretrain(config)
    known = old.tokenizer.vocabulary_size
    assert model.vocabulary_size == known + 3
    assert {"rendolab", "gontimef"} <= set(model.tokenizer.vocabulary[known:])
    table = np.array(old.encoder.embeddings.token.embeddings)
    np.testing.assert_array_equal(starts[0][:known], table)
    for token, row in zip(
        model.tokenizer.vocabulary[known:], starts[0][known:], strict=True
    ):
        if not token.startswith("##"):
            parts = old.tokenizer.encode(token)
            np.testing.assert_allclose(row, table[parts].mean(axis=0), rtol=1e-5)
    # Called again it is the same run, done.
    again = pretrain(config)
    assert again.tokenizer.fingerprint == model.tokenizer.fingerprint
    # Examples made so before serve, too.
    data = config.output + "/data"
    other = dataclasses.replace(
        config, data=data, corpus=(), grow_vocabulary=0, output=config.output + "_2"
    )
    model = pretrain(other)
    assert model.tokenizer.fingerprint == load(data).fingerprint
    np.testing.assert_array_equal(starts[-1], starts[0])


def test_what_cannot_grow(config, domain, tmp_path, monkeypatch):
    def refused(*flags):
        flags = [f"--output={config.output}", "--corpus", domain, *flags]
        monkeypatch.setattr("sys.argv", ["recipe.py", *flags])
        with pytest.raises(SystemExit) as caught:
            main(dataclasses.replace(config, data=None, workers=1), "A recipe.")
        assert not (tmp_path / "run").exists()
        return str(caught.value.code)

    assert "no vocabulary to grow" in refused("--grow_vocabulary", "5")
    bpe = ByteBPETokenizer.train(["some text to train on"] * 9, 300)
    bpe.save(tmp_path / "bpe")
    flags = ["--vocabulary", str(tmp_path / "bpe" / "tokenizer.json")]
    flags += ["--tokenizer", "byte_bpe", "--grow_vocabulary", "5"]
    assert "kind byte_bpe cannot grow" in refused(*flags)
