"""Fine-tuning and evaluation of pretrained encoders. Start with README.md here."""

from keras_corrupt.downstream.span_extractor import SpanExtractor
from keras_corrupt.downstream.text_classifier import TextClassifier

__all__ = ["SpanExtractor", "TextClassifier"]
