import os
import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent

# Read, not imported: the package needs Keras, which may not be installed yet.
VERSION = re.search(
    r'^__version__ = "(.+)"$',
    (ROOT / "keras_corrupt" / "version.py").read_text(encoding="utf-8"),
    re.MULTILINE,
).group(1)

PYTHONS = ("3", "3.11", "3.12", "3.13")

# pip knows no "either", and an extra cannot take a requirement away: who wants the
# smaller `tensorflow-cpu`, or `none` and JAX alone, says so at installation.
TENSORFLOW = os.environ.get("KERAS_CORRUPT_TENSORFLOW", "tensorflow")
# It requires `tensorflow`, and is not made for Windows: the package works without.
TEXT = [
    "tensorflow-text>=2.20,<2.21; sys_platform != 'win32' and python_version < '3.14'"
]

BEAM = ["apache-beam>=2.60"]
DEMO = ["gradio>=6,<7"]
HF_DATASETS = ["datasets>=3"]
JAX = ["jax>=0.4.36"]
MULTITASK = ["statsmodels>=0.14.4"]
PARQUET = ["pyarrow>=16"]
PARSING = ["ufal.chu_liu_edmonds>=1.0.3"]
RUNTIMES = ["ai-edge-litert>=2", "onnxruntime>=1.20", "tf2onnx>=1.17"]
# `tensorflow_hub`, which it requires, imports `pkg_resources`: gone in setuptools 81.
SQUAD = ["tf-models-official>=2.20,<2.21", "setuptools<81"]
# `etils`, which it requires, imports `importlib_resources` and does not require it.
TFDS = ["tensorflow-datasets>=4.9.7", "importlib-resources>=6"]
TRANSLATION = ["sacrebleu>=2.4"]

setup(
    name="keras-corrupt",
    version=VERSION,
    description="Pretrain text encoders by corrupting text, in Keras 3.",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        *(f"Programming Language :: Python :: {v}" for v in PYTHONS),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
    # The recipes are installed, too: `python -m keras_corrupt.recipes.electra_tiny`.
    packages=[*find_packages(include=["keras_corrupt*"]), "keras_corrupt.recipes"],
    package_dir={"keras_corrupt.recipes": "recipes"},
    # Trained presets: presets/<system>/<name>/, with a folder for each network.
    package_data={
        "keras_corrupt.presets": [
            "*/*/*.json",
            "*/*/README.md",
            "*/*/vocab.txt",
            "*/*/*/model.safetensors",
        ],
    },
    entry_points={"console_scripts": ["keras-corrupt = keras_corrupt.__main__:main"]},
    python_requires=">=3.11",
    install_requires=[
        *([] if TENSORFLOW == "none" else [f"{TENSORFLOW}>=2.20,<2.21"]),
        "keras>=3.12,<4",
        "h5py>=3.11",
        "lazy-loader>=0.4",
        "matplotlib>=3.8",
        "numba>=0.61",
        "numpy>=1.26",
        "packaging>=23",
        "protobuf>=5.28",
        "rapidfuzz>=3.9",
        "safetensors>=0.4",
        "scikit-learn>=1.5",
        "scipy>=1.11",
        "seqeval>=1.2.2",
        "tensorboard>=2.20",
        "tokenizers>=0.20",
        "tqdm>=4.66",
        "tyro>=0.9",
        "zstandard>=0.22",
        *(TEXT if TENSORFLOW == "tensorflow" else []),
    ],
    extras_require={
        "beam": BEAM,
        "benchmark": [
            *SQUAD,
            "gensim>=4.4",
            "keras-hub>=0.21",
            "psutil>=6",
            "transformers>=4.56",
        ],
        "demo": DEMO,
        "gs": ["gcsfs>=2024.2"],
        "hf-datasets": HF_DATASETS,
        "hubs": ["huggingface-hub>=0.30", "kagglehub>=0.3"],
        "jax": JAX,
        "mlflow": ["mlflow>=2.14"],
        "multitask": MULTITASK,
        "parquet": PARQUET,
        "parsing": PARSING,
        "runtimes": RUNTIMES,
        "s3": ["s3fs>=2024.2"],
        "squad": SQUAD,
        "tfds": TFDS,
        "translation": TRANSLATION,
        "wandb": ["wandb>=0.18"],
        "test": [
            *BEAM,
            *HF_DATASETS,
            *JAX,
            *MULTITASK,
            *PARQUET,
            *PARSING,
            *RUNTIMES,
            *SQUAD,
            *TRANSLATION,
            "hypothesis>=6.100",
            "ipython>=8.20",
            "keras-hub>=0.21",
            "nbformat>=5.10",
            "pytest>=8.0",
            "pytest-xdist>=3.6",
            "ruff>=0.9",
            "sentencepiece>=0.2",
            "udtools>=0.2.9",
        ],
    },
)
