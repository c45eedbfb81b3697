"""Fine-tuning and evaluation of pretrained encoders. Start with README.md here."""

from keras_corrupt.downstream.text_classifier import TextClassifier

__all__ = ["TextClassifier"]
