import dataclasses
import json

import numpy as np

from keras_corrupt.downstream import results


def test_arrays_of_different_lengths_are_stacked():
    rows = [{"x": np.ones((2, 3)), "y": 1.0}, {"x": np.ones((4, 3)), "y": 2.0}]
    arrays = results.stacked(rows)
    assert arrays["x"].shape == (2, 4, 3) and arrays["x"].sum() == 18
    assert arrays["y"].tolist() == [1.0, 2.0]
    assert results.stacked([]) == {}


def test_table_has_medians_averages_and_what_papers_report():
    def run(score):
        metrics = {
            "dev_matched": {"accuracy": score, "f1": 10 * score},
            "dev_mismatched": {"accuracy": score + 1},
        }
        found = {"metric": "accuracy", "score": score, "metrics": metrics}
        return {**found, "failed": False}

    rows = [
        results.Row("A", [run(1.0), run(2.0), run(9.0)], 0.5, None, {"BERT": 70.0}),
        results.Row("B", [run(4.0)], 0.5, None, {"BERT": 80.0}),
    ]
    lines = results.table(rows).splitlines()
    assert lines[2] == (
        "| A | accuracy | 0.5 | 2.0 | 1.0 to 9.0 | 3 | 70.0 | "
        "f1 20.0, dev_mismatched accuracy 3.0 |"
    )
    assert lines[4] == "| average |  |  | 3.0 |  |  | 75.0 |  |"
    assert json.dumps([dataclasses.asdict(row) for row in rows])
