"""Cosines of texts' vectors, beside people's scores."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from keras_corrupt.evaluation import similarity
from keras_corrupt.scoring import embed_texts

PAIRS = [
    ("A man plays a guitar.", "A man is playing a guitar.", 5.0),
    ("A dog runs.", "A dog is running.", 4.5),
    ("The sea was calm.", "The senate met in March.", 0.0),
    ("He opened the door.", "He closed the door.", 2.0),
]


def test_cosines_by_hand():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 30, 8))
    scores = [5.0] * 4 + rng.uniform(0, 5, 26).tolist()
    found = similarity.similarity(first, second, scores)

    def cosine(x, y):
        return x @ y / np.sqrt((x @ x) * (y @ y))

    cosines = [cosine(x, y) for x, y in zip(first, second, strict=True)]
    expected = 100 * spearmanr(cosines, scores).statistic
    assert found.spearman == pytest.approx(expected)
    np.testing.assert_allclose(found.similar, cosines[:4])
    others = [cosine(first[i], second[i - 1]) for i in range(30)]
    np.testing.assert_allclose(found.random, others)
    with pytest.raises(ValueError, match="no pair has the score 5.0"):
        similarity.similarity(first, second, [1.0] * 30)


def test_the_command_reads_stsb_and_writes_a_table(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "glue" / "STS-B"
    folder.mkdir(parents=True)
    rows = ["index\tsentence1\tsentence2\tscore"]
    rows += [f"{i}\t{a}\t{b}\t{score}" for i, (a, b, score) in enumerate(PAIRS)]
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n")
    flags = ["tiny_en", "--data", str(tmp_path / "glue"), "--pooling", "mean"]
    output = ["--output", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", ["similarity", *flags, *output])
    similarity.main()
    printed = capsys.readouterr().out
    first, second, scores = zip(*PAIRS, strict=True)
    vectors = [embed_texts("tiny_en", list(texts)) for texts in (first, second)]
    expected = similarity.similarity(*vectors, scores)
    assert f"| tiny_en | {expected.spearman:.1f} | {expected.similar.mean():.3f}" in (
        printed
    )
    assert (tmp_path / "out" / "similarity.md").read_text() == printed
    assert (tmp_path / "out" / "similarity.png").stat().st_size > 1000

    missing = str(tmp_path / "none")
    (tmp_path / "file").touch()
    for changed, message in [
        ([missing, *flags[1:], *output], "none"),
        (["a/x/preset", "b/x/preset", *flags[1:], *output], "two presets are called x"),
        ([missing, *flags[1:], "--output", str(tmp_path / "file")], "cannot hold"),
    ]:
        monkeypatch.setattr("sys.argv", ["similarity", *changed])
        with pytest.raises(SystemExit, match=f"Error: .*{message}"):
            similarity.main()
