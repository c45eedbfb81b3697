"""How Keras finds the classes of this package that a `.keras` file names.

Importing keras_corrupt loads none of its parts, so Keras gets a stand-in for each
class, which imports the class once a file names it.
"""

import importlib
import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec


class StandIn:
    """Stands for a class until that is imported, which registers it instead."""

    def __init__(self, part, name):
        self.part, self.name = part, name

    def from_config(self, config):
        """Returns an instance of the class itself."""
        return self.imported().from_config(config)

    def imported(self):
        """Returns the class itself."""
        part = importlib.import_module(f"keras_corrupt.{self.part}")
        return getattr(part, self.name)


def register(classes):
    """Registers all stand-ins, now or as soon as Keras is imported.

    Args:
        classes: Dict. Part of the package -> the names of its classes that a file can
            have.
    """
    if "keras" not in sys.modules:
        sys.meta_path.insert(0, _WhenKerasLoads(classes))
        return
    import keras

    known = keras.saving.get_custom_objects()
    for part, names in classes.items():
        for name in names:
            known.setdefault(f"keras_corrupt>{name}", StandIn(part, name))


class _WhenKerasLoads(MetaPathFinder):
    """Finds Keras where it is, and registers once it has run."""

    def __init__(self, classes):
        self.classes = classes

    def find_spec(self, name, path=None, target=None):
        if name != "keras":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None:
            run = spec.loader.exec_module

            def run_and_register(module):
                run(module)
                register(self.classes)

            spec.loader.exec_module = run_and_register
        return spec
