r"""How acceptable a model finds a text, for minimal pairs.

A model that gives tokens probabilities says it by their sum, the pseudo-log-likelihood.
A model that detects replaced tokens says it by the probability that no token t of the
text x was replaced:

    sum over tokens t of log(1 - p(replaced | x, t))
"""

import numpy as np

from keras_corrupt.scoring import likelihoods
from keras_corrupt.tokenizers.texts import text_list

#: The least probability that a token was not replaced: float32 tells no smaller ones.
_LEAST = 2.0**-24


def acceptabilities(model, texts, batch_size=32, progress=False):
    """Gives each text a score; the model finds texts of higher scores likelier.

    Args:
        model: A model that gives tokens probabilities, or one with `score`, such as
            `Electra`; with a tokenizer.
        texts: A list of strings.
        batch_size: Texts in a batch.
        progress: Whether a bar is drawn, by a model of the first kind.

    Returns:
        float `[texts]`, NumPy: nats. Special tokens do not count.

    Raises:
        ValueError: The model does neither, lacks its tokenizer, or cannot read a text.
    """
    if not hasattr(model, "score") or likelihoods.gives_probabilities(type(model)):
        options = {"batch_size": batch_size, "progress": progress}
        return likelihoods.score_sentences(model, texts, **options)
    # Without [CLS] and [SEP].
    scores = [
        text.probabilities[1:-1].astype("float64")
        for text in model.score(text_list(texts), batch_size)
    ]
    return np.array([np.log(np.maximum(1 - p, _LEAST)).sum() for p in scores])
