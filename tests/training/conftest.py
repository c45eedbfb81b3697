from keras_corrupt.devices import distribution
from keras_corrupt.training import PretrainConfig
from tests.data.conftest import corpus, prepared, settings  # noqa: F401


def with_devices(count, **changes):
    """The `Distribution` that a run on `count` devices would choose."""
    changes = {"devices": count, **changes}
    config = PretrainConfig(model="Electra", preset="tiny", output="", **changes)
    return distribution.choose(config)
