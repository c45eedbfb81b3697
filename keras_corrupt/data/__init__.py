"""Data: corpus to examples to batches.

`prepare_dataset` turns a corpus into a directory of examples, once; `make_dataset`
returns batches of it.
"""

import lazy_loader

# On first use, so that a worker process that tokenises loads no TensorFlow.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "corpus": ["CorpusError", "open_corpus"],
        "examples": ["Example", "build_examples"],
        "info": ["DatasetError", "DatasetInfo", "load_dataset_info"],
        "pipeline": ["make_dataset"],
        "prepare": ["prepare_dataset"],
        "record_files": ["check_records"],
    },
)
