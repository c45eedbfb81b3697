"""The door to saved models: `Preset.open` opens one, wherever it comes from.

The room knows no system. It asks a class of models for these:

    networks                name -> network: their weights are saved
    tokenizer, get_config   they are saved, too
    network_arguments       argument -> class of the network that it describes
    trained_presets         name -> directory of a preset that comes with the class
    parameters_of           function of a config: its size, if it has other networks
    check_loaded            method of a loaded model: warns of its faults
"""

import dataclasses
import warnings
from pathlib import Path

import keras

from keras_corrupt.encoders import TextModel
from keras_corrupt.files.whole_directory import recovered
from keras_corrupt.presets import directory as files
from keras_corrupt.presets import growth, weights
from keras_corrupt.presets.locations import directory_of, trained_presets
from keras_corrupt.presets.overrides import merge, with_global_policy
from keras_corrupt.presets.registry import find_class, import_class, registered_name
from keras_corrupt.presets.sizes import check_sizes, network_arguments
from keras_corrupt.tokenizers import Tokenizer


@dataclasses.dataclass(frozen=True, eq=False)
class Preset:
    """A saved model that has been opened and checked; none of its networks is made.

    Attributes:
        directory: Where it is, a `Path`.
        model_class: The model's class.
        config: Dict. The arguments of its constructor.
        tokenizer: Its tokenizer, if it has one.
        untrained_networks: Names of networks whose weights it says that it lacks.

    Example:

    >>> import keras_corrupt
    >>> preset = keras_corrupt.models.Electra.trained_presets["tiny_en"]
    >>> preset = Preset.open(preset)
    >>> preset.model_class.__name__, preset.encoder["num_layers"], preset.tokenizer.kind
    ('Electra', 2, 'wordpiece')
    """

    directory: Path
    model_class: type
    config: dict
    tokenizer: Tokenizer | None
    untrained_networks: tuple

    @classmethod
    def open(cls, source, kinds=TextModel, names=()):
        """Opens a preset.

        Args:
            source: A directory that `save_to_preset` wrote, the name of a trained
                preset, or what another library wrote: a path, or an address on a hub.
            kinds: The class that the model must be derived from, or a tuple of such.
            names: Names that the caller knows beside these, for the error.

        Returns:
            The `Preset`.

        Raises:
            ValueError: There is no preset, its class is not known, or its files do not
                fit together.
        """
        directory = recovered(directory_of(source))
        if not directory.is_dir():
            raise ValueError(
                f"Unknown preset {str(source)!r}: neither one of "
                f"{sorted({*names, *trained_presets()})} nor a directory."
            )
        content = files.read_config(directory)
        try:
            model_class = find_class(content["class"], kinds)
        except ValueError as error:
            raise ValueError(f"{directory} cannot be loaded: {error}") from error
        if not hasattr(model_class, "networks"):
            raise ValueError(
                f"{directory} cannot be loaded: {content['class']} has no presets."
            )
        stored = files.count_weights(directory)
        with files.refusing(directory / "config.json"):
            check_sizes(model_class, content["config"], *stored)
        tokenizer = files.read_tokenizer(directory, content.get("tokenizer"))
        untrained = tuple(content.get("left_out", ()))
        return cls(directory, model_class, content["config"], tokenizer, untrained)

    def of(self, cls):
        """Returns the preset; raises a `ValueError` if it is of another class."""
        if self.model_class is not cls:
            name = registered_name(self.model_class)
            raise ValueError(
                f"{self.directory} is a preset of {name}, not of {cls.__name__}; load "
                f"it with {name}.from_preset."
            )
        return self

    @property
    def main(self):
        """Name of the argument that describes the main encoder; `None` without one."""
        return next(iter(network_arguments(self.model_class)), None)

    @property
    def encoder(self):
        """Arguments of the main encoder, a dict.

        Raises:
            ValueError: The preset does not describe it.
        """
        encoder = self.config.get(self.main)
        if not isinstance(encoder, dict):
            raise ValueError(
                f"{self.directory} cannot be loaded: its config.json does not describe "
                f"{self.model_class.__name__}'s {self.main}. Give a directory that "
                "save_to_preset wrote."
            )
        return encoder

    def has(self, network):
        """Whether it has the weights of a network; some leave the generator out."""
        return (self.directory / network).is_dir()

    def load(self, tokenizer=None, partial=False, **overrides):
        """Makes the model and loads its weights.

        The override `dtype` decides the precision, or `keras.config.set_dtype_policy`
        where that is not float32, or else the preset.

        Args:
            tokenizer: The tokenizer of a preset that has none.
            partial: Whether networks that the preset has not keep their new weights.
                Its `untrained_networks` do so anyway, with a warning.
            overrides: Constructor arguments to change; a dict changes only the entries
                it has. Where the main encoder's `max_length` is more than the
                preset's, all networks get this `max_length`, and new positions start
                as copies of the trained ones.

        Returns:
            The model. Its `untrained_networks` names the networks with new weights.

        Raises:
            ValueError: The arguments make no model, or the weights are another one's.
        """
        remedy = files.REMEDY
        if arguments := sorted({*overrides} - {"seed", "dtype", "name"}):
            remedy = (
                f"Leave out what does not fit, of {', '.join(arguments)}; or, if the "
                "preset is damaged, restore it from where it came."
            )
        with files.refusing(self.directory / "config.json", remedy=remedy):
            config = merge(with_global_policy(self.config), overrides)
            length = overrides.get(self.main, {}).get("max_length", 0)
            trained = self.config.get(self.main, {}).get("max_length", length)
            if length > trained:
                networks = network_arguments(self.model_class)
                config = merge(config, {n: {"max_length": trained} for n in networks})
            model = self.model_class(**config, tokenizer=self.tokenizer or tokenizer)
        self._load_weights(model, partial, remedy)
        if length > trained:
            model = growth.with_positions(model, length)
        if hasattr(model, "check_loaded"):
            model.check_loaded(self.directory)
        return model

    def _load_weights(self, model, partial, remedy):
        new = []
        for name, network in model.networks.items():
            if (partial or name in self.untrained_networks) and not self.has(name):
                new.append(name)
                if not partial:
                    warnings.warn(
                        f"The preset has no {name}; the model gets a new one.",
                        stacklevel=4,
                    )
                continue
            path = self.directory / name / weights.FILE
            prefix = f"not the {name} that config.json describes: "
            with files.refusing(path, prefix, remedy):
                weights.load(path, network)
        model.untrained_networks = tuple(new)


def load_preset(source, kinds=TextModel, system=None):
    """Loads a saved model, pretrained or fine-tuned, of whichever class.

    Args:
        source: What `Preset.open` opens. A model that is not of this package is known
            once the module that defines it has been imported.
        kinds: See `Preset.open`.
        system: `module:Class` of such a model, whose module this imports.

    Returns:
        The model.

    Raises:
        ValueError: It is no preset, or one of an unknown model.
    """
    if system:
        import_class(system, keras.Model)
    return Preset.open(source, kinds).load()
