"""Details of "A Fully-Explored Masked Language Model" that a recipe has."""

from tests.fidelity.conftest import recipe


def test_adaptation_goes_on_as_section_4_1_does():
    config = recipe("adapt_to_domain").config()
    assert (config.batch_size, config.learning_rate) == (48, 1e-4)
    assert config.steps == 20_000
