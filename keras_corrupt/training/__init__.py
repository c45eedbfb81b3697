"""Training: optimizer, schedules, checkpoints, and the runner of the recipes."""

from keras_corrupt.training.checkpoint import CheckpointError, Checkpoints
from keras_corrupt.training.config import PretrainConfig
from keras_corrupt.training.optimizer import AdamW
from keras_corrupt.training.runner import main, pretrain
from keras_corrupt.training.schedules import WarmupLinearDecay

__all__ = [
    "AdamW",
    "CheckpointError",
    "Checkpoints",
    "PretrainConfig",
    "WarmupLinearDecay",
    "main",
    "pretrain",
]
