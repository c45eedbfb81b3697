"""Addresses of models on hubs, fetched by the libraries made for that."""

from pathlib import Path

#: The files that are fetched of a Hugging Face repository: no code, and no pickle if
#: there are weights in another format.
_FILES = (
    *("*.json", "vocab.txt", "model.safetensors", "generator/*"),
    "*/model.safetensors",  # the networks of our presets
)
_INSTALL = {"hf": "huggingface_hub", "kaggle": "kagglehub"}


def is_address(name):
    """Whether a name is an address on a hub."""
    hub, colon, _ = str(name).partition("://")
    return bool(colon) and hub in _INSTALL


def local_copy(address):
    """Returns the directory of a path or an address, fetched if it is an address.

    Args:
        address: `hf://owner/name`, also with `@revision`; `kaggle://` and what
            `kagglehub` calls a handle; anything else is a path.

    Returns:
        A `Path`.

    Raises:
        ValueError: It cannot be fetched.
    """
    if not is_address(address):
        return Path(address)
    hub, _, name = str(address).partition("://")
    try:
        return Path({"hf": _hugging_face, "kaggle": _kaggle}[hub](name))
    except ImportError as error:
        raise not_installed(hub, address) from error
    except Exception as error:  # each library has its own, for networks and names
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"{address} cannot be fetched: {reason} Without a network, give the "
            "directory of a copy."
        ) from error


def not_installed(hub, address):
    """Returns the error that names the library of an address's hub."""
    library = _INSTALL[hub]
    return ValueError(f"{address} needs {library}: pip install {library}.")


def _hugging_face(name):
    import huggingface_hub

    name, _, revision = name.partition("@")

    def fetch(*patterns):
        return huggingface_hub.snapshot_download(
            name, revision=revision or None, allow_patterns=[*patterns]
        )

    directory = Path(fetch(*_FILES))
    if not (directory / "model.safetensors").exists():
        fetch(*_FILES, "pytorch_model.bin")
    return directory


def _kaggle(name):
    import kagglehub

    return kagglehub.model_download(name)
