"""Data: corpus to examples to batches.

`prepare_dataset` turns a corpus into a directory of examples, once; `make_dataset`
streams batches from it.
"""

import importlib

_MODULES = {
    "CorpusError": "corpus",
    "DatasetError": "info",
    "DatasetInfo": "info",
    "Example": "examples",
    "build_examples": "examples",
    "check_records": "record_files",
    "load_dataset_info": "info",
    "make_dataset": "pipeline",
    "name_damage": "pipeline",
    "open_corpus": "corpus",
    "prepare_dataset": "prepare",
}

__all__ = sorted(_MODULES)


def __getattr__(name):
    # On first use, so that a worker process that tokenises loads no TensorFlow.
    if name in _MODULES:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
