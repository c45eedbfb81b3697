"""Semi-supervised learning: Cross-View Training (Clark's thesis, chapter 4)."""

import lazy_loader

from keras_corrupt.semi_supervised.cross_view import (
    CrossViewConfig,
    ParsingConfig,
    main,
)

# On first use: a recipe's help needs no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "parser": ["CrossViewParser"],
        "runner": ["train"],
        "tagger": ["CrossViewTagger"],
        "token_tagger": ["CrossViewTokenTagger"],
    },
)
__all__ += ["CrossViewConfig", "ParsingConfig", "main"]
