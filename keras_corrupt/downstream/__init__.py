"""Fine-tuning and evaluation of pretrained encoders. Start with README.md here."""

import lazy_loader

from keras_corrupt.downstream.finetune import FinetuneConfig, finetune, main

# On first use: a recipe's help needs no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "candidate_ranker": ["CandidateRanker"],
        "multi_label_classifier": ["MultiLabelClassifier"],
        "prompt_classifier": ["PromptClassifier"],
        "sentence_encoder": ["SentenceEncoder"],
        "span_extractor": ["SpanExtractor"],
        "text_classifier": ["TextClassifier"],
        "token_tagger": ["TokenTagger"],
    },
)
__all__ += ["FinetuneConfig", "finetune", "main"]
