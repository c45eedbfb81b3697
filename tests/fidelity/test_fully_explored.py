"""Details of "A Fully-Explored Masked Language Model" that a recipe has."""

import pytest

from tests.fidelity.conftest import recipe

pytestmark = pytest.mark.tensorflow_only  # No backend changes them.


def test_adaptation_goes_on_as_section_4_1_does():
    config = recipe("adapt_to_domain").config()
    assert (config.batch_size, config.learning_rate) == (48, 1e-4)
    assert config.steps == 20_000
