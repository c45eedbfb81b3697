import pytest


@pytest.fixture(autouse=True, scope="module")
def few_steps(eager):
    """Tests of this folder make few."""
