"""Cross-View Training (Clark's thesis, chapter 4)."""

import lazy_loader

from keras_corrupt.cross_view.images.config import ImageConfig
from keras_corrupt.cross_view.multi_task.config import CrossViewMultiTaskConfig
from keras_corrupt.cross_view.run.config import (
    CrossViewConfig,
    ParsingConfig,
    main,
)
from keras_corrupt.cross_view.translation.config import TranslationConfig

# On first use: a recipe's help needs no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "bilstm.encoder": ["BiLSTMEncoder"],
        "images.classifier": ["CrossViewImageClassifier"],
        "multi_task.model": ["CrossViewMultiTask"],
        "parsing.parser": ["CrossViewParser"],
        "run.cross_view_run": ["train"],
        "tagging.tagger": ["CrossViewTagger"],
        "tagging.token_tagger": ["CrossViewTokenTagger"],
        "translation.translator": ["CrossViewTranslator"],
    },
)
__all__ += ["CrossViewConfig", "CrossViewMultiTaskConfig", "ImageConfig"]
__all__ += ["ParsingConfig", "TranslationConfig", "main"]
