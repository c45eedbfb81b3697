"""Fine-tuning and evaluation of pretrained encoders. Start with README.md here."""

from keras_corrupt.downstream.text_classifier import TextClassifier
from keras_corrupt.downstream.token_tagger import TokenTagger

__all__ = ["TextClassifier", "TokenTagger"]
