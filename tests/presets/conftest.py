from tests.data.conftest import corpus, prepared, settings  # noqa: F401
