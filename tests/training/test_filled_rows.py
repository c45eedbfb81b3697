"""`--fill_rows`: a run whose sequences hold several examples."""

import dataclasses

import numpy as np

from keras_corrupt.data.info import load_dataset_info
from keras_corrupt.data.pipeline import make_dataset
from keras_corrupt.training.batches import training_batches, validation_batches
from tests.training.conftest import with_devices


def test_a_step_has_the_rows_of_its_number(config):
    config = dataclasses.replace(config, fill_rows=True, sequence_length=80)
    info = load_dataset_info(config.data)
    batches = training_batches(info, config, 3, with_devices(1), [])
    options = {"batch_size": 16, "max_length": 80, "seed": config.seed}
    rows = make_dataset(config.data, **options, fill_rows=True)[4]
    assert rows["text_ids"].max() > 1
    for name, array in rows.items():
        np.testing.assert_array_equal(batches[1][name], array)
    # What a model is measured on does not depend on it.
    assert "text_ids" not in validation_batches(info, config)[0]


def test_runs_of_earlier_versions_have_no_such_setting(config):
    assert "fill_rows" not in config.as_dict()
    assert dataclasses.replace(config, fill_rows=True).as_dict()["fill_rows"]
