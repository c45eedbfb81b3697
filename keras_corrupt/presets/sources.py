"""What can be opened as a preset though it is none: a list that other rooms fill."""

from pathlib import Path
from typing import Protocol


class Source(Protocol):
    """Makes presets of something else; a module can be one."""

    def recognises(self, name) -> bool:
        """Whether a preset's name, path or address is one of this source."""

    def preset_of(self, name) -> Path:
        """Returns the directory of a preset made of what it recognises."""


_SOURCES: list[Source] = []


def register_source(source):
    """Lets all that take a preset take those of a `Source`."""
    _SOURCES.append(source)


def made_preset(name):
    """Returns the directory that a source makes of a name, or the name as it is.

    Raises:
        ValueError: The source cannot make a preset of it.
    """
    for source in _SOURCES:
        if source.recognises(name):
            return source.preset_of(name)
    return name
