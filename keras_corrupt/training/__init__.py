"""Training: optimizer, schedules, checkpoints, and the runner of the recipes."""

from keras_corrupt.training.checkpoint import CheckpointError, Checkpoints
from keras_corrupt.training.command_line import main
from keras_corrupt.training.config import PretrainConfig
from keras_corrupt.training.optimizer import AdamW
from keras_corrupt.training.phases import Phase
from keras_corrupt.training.runner import pretrain
from keras_corrupt.training.schedules import WarmupLinearDecay

__all__ = [
    "AdamW",
    "CheckpointError",
    "Checkpoints",
    "Phase",
    "PretrainConfig",
    "WarmupLinearDecay",
    "main",
    "pretrain",
]
