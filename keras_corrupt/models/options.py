"""The options of a pretraining model: what a recipe or a flag can set."""

import difflib
import inspect
import re
from typing import NamedTuple

#: Arguments that are no options of a model: data, networks or the runner decide them.
NO_OPTIONS = {
    *("vocabulary_size", "max_length", "tokenizer", "mask_id", "unmaskable_ids"),
    *("seed", "dtype", "name"),
}
#: Arguments that are no options of a network.
NO_NETWORK_OPTIONS = {
    *("vocabulary_size", "padding_id"),
    *("tied_to", "tied_parts", "tied_layers", "disentangled"),
}


class Option(NamedTuple):
    """An option.

    Attributes:
        type: Its default's type; `None` if there is no default to tell it.
        default: Its default; `None` also where a preset or other options decide.
        can_be_none: Whether the option can be `None`.
        text: What the docstring says of it.
    """

    type: type | None
    default: object
    can_be_none: bool
    text: str


def options_of(cls):
    """Lists the options of a model: its constructor's arguments.

    Args:
        cls: A `Pretrainer` class. Arguments that its constructor passes on
            (`**kwargs`) are arguments of the next base class.

    Returns:
        A dict from names to an `Option`, or to such a dict for a network.

    Example:

    >>> from keras_corrupt.models import Electra
    >>> options = options_of(Electra)
    >>> options["mask_rate"].default, options["generator"]["num_layers"].type
    (0.15, None)
    """
    networks = {
        name: _arguments(network, NO_NETWORK_OPTIONS)
        for name, network in cls.network_arguments.items()
    }
    return {**_arguments(cls, NO_OPTIONS), **networks}


def check_options(cls, given):
    """Raises a `ValueError` for a name that is none of the options.

    Args:
        cls: A `Pretrainer` class.
        given: A dict of options; a network's options are a dict of their own.
    """
    _check(cls, options_of(cls), given, "")


def check_arguments(cls, given, fixed=()):
    """Raises a `ValueError` for a name that the constructor does not take.

    Args:
        cls: A `Pretrainer` class.
        given: A dict of arguments.
        fixed: Names of a network's options that its weights decide.
    """
    networks = {name: _arguments(of, ()) for name, of in cls.network_arguments.items()}
    # A system passes its networks' sizes on to the base, and takes none itself.
    sizes = {"vocabulary_size", "max_length"}
    own = inspect.signature(cls.__init__).parameters
    arguments = {*_arguments(cls, sizes - {*own}), *networks, "dtype", "name"}
    for name, value in given.items():
        if name in arguments:
            continue
        owner = next((n for n, options in networks.items() if name in options), None)
        if name in fixed:
            remedy = "The weights decide it: leave it out."
        elif owner:
            remedy = f"The network has: pass {owner}={{{name!r}: {value!r}}}."
        else:
            near = difflib.get_close_matches(name, arguments, n=3, cutoff=0.5)
            remedy = f"It has {', '.join(near or sorted(arguments))}."
        raise ValueError(f"{cls.__name__} has no argument {name!r}. {remedy}")


def _check(cls, options, given, prefix):
    for name, value in given.items():
        if name not in options:
            near = difflib.get_close_matches(name, options, n=3, cutoff=0.5)
            names = ", ".join(prefix + n for n in near or sorted(options))
            raise ValueError(
                f"{cls.__name__} has no option {prefix + name!r}. "
                f"{'The nearest are' if near else 'It has'} {names}."
            )
        if isinstance(options[name], dict):
            if not isinstance(value, dict):
                raise ValueError(
                    f"The option {prefix + name!r} of {cls.__name__} is a network: "
                    f"give a dict of its options, not {value!r}."
                )
            _check(cls, options[name], value, f"{prefix}{name}.")


def _arguments(cls, excluded):
    """Returns the options among the arguments of a class and of its bases."""
    options = {}
    for base in cls.__mro__:
        if base.__module__.startswith("keras."):
            break
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(base.__init__).parameters.values()
        texts = _argument_texts(base.__doc__ or "")
        for parameter in parameters:
            named = parameter.kind in (
                parameter.POSITIONAL_OR_KEYWORD,
                parameter.KEYWORD_ONLY,
            )
            if named and parameter.name not in {"self", *excluded, *options}:
                text = texts.get(parameter.name, "")
                options[parameter.name] = _option(parameter, text)
        if all(p.kind is not p.VAR_KEYWORD for p in parameters):
            break
    return options


def _option(parameter, text):
    default = None if parameter.default is parameter.empty else parameter.default
    kind = None if default is None else type(default)
    return Option(kind, default, parameter.default is None, text)


def _argument_texts(docstring):
    """Returns the texts of a docstring's section `Args`, by argument."""
    section = re.search(r"\n\s*Args:\n(.*?)(\n\s*\n|\Z)", docstring, re.DOTALL)
    texts, name, depth = {}, None, None
    for line in section[1].splitlines() if section else []:
        indent = len(line) - len(line.lstrip())
        depth = indent if depth is None else depth
        match = re.match(r"\s*(\w+): (.*)", line)
        if match and indent == depth:
            name, texts[match[1]] = match[1], match[2]
        elif name:
            texts[name] += f" {line.strip()}"
    return texts
