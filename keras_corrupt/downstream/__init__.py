"""Fine-tuning and evaluation of pretrained encoders. Start with README.md here."""

from keras_corrupt.downstream.candidate_ranker import CandidateRanker
from keras_corrupt.downstream.finetune import FinetuneConfig, finetune, main
from keras_corrupt.downstream.span_extractor import SpanExtractor
from keras_corrupt.downstream.text_classifier import TextClassifier
from keras_corrupt.downstream.token_tagger import TokenTagger

__all__ = [
    "CandidateRanker",
    "FinetuneConfig",
    "SpanExtractor",
    "TextClassifier",
    "TokenTagger",
    "finetune",
    "main",
]
