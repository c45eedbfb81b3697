"""Models that presets of their own hold."""

from keras_corrupt.cross_view.model import CrossViewModel
from keras_corrupt.presets import Preset
from keras_corrupt.presets.directory import write
from keras_corrupt.presets.overrides import merge


class PresetModel(CrossViewModel):
    """A model of a published size, or saved and loaded as a whole.

    A preset holds `networks`: what predicts. Auxiliary modules are only for training.
    """

    #: Name of a published size -> arguments of the class.
    presets = {}
    trained_presets = {}

    @classmethod
    def from_preset(cls, preset, **arguments):
        """Makes a model of a published size, or loads a trained one.

        Args:
            preset: A name of `presets`, for new weights; or a directory that
                `save_to_preset` wrote, whose auxiliary modules are new.
            arguments: For a size those arguments of the class that have no default,
                and any others. `encoder={"num_filters": 50}` leaves the encoder's other
                sizes as they are.
        """
        if preset in cls.presets:
            return cls(**merge(cls.presets[preset], arguments))
        saved = Preset.open(preset, PresetModel, names=cls.presets)
        return saved.of(cls).load(**arguments)

    def save_to_preset(self, directory):
        """Writes the configuration and the weights, whole or not at all.

        Args:
            directory: A new or empty directory, or a preset to overwrite.
        """
        write(directory, self)
