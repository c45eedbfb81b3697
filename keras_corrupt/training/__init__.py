"""Training: optimizer, schedules, checkpoints, and the runs of the recipes."""

import lazy_loader

# On first use: a recipe's help needs no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "checkpoint": ["CheckpointError", "Checkpoints"],
        "command_line": ["main"],
        "config": ["PretrainConfig"],
        "muon": ["Muon"],
        "optimizer": ["AdamW"],
        "phases": ["Phase"],
        "pretraining": ["pretrain"],
        "schedules": [
            "InverseRootDecay",
            "LateLinearDecay",
            "WarmupLinearDecay",
            "WarmupStableDecay",
        ],
        "sgd": ["SGD"],
    },
)
