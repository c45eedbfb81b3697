"""Fine-tuning and evaluation of pretrained encoders. Start with README.md here."""

from keras_corrupt.downstream.finetune import FinetuneConfig, finetune, main
from keras_corrupt.downstream.text_classifier import TextClassifier

__all__ = ["FinetuneConfig", "TextClassifier", "finetune", "main"]
