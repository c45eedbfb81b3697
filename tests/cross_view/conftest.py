import numpy as np
import pytest

from keras_corrupt.cross_view import (
    CrossViewImageClassifier,
    CrossViewParser,
    CrossViewTagger,
    CrossViewTokenTagger,
    CrossViewTranslator,
)
from keras_corrupt.cross_view.text.sentences import Sentences
from keras_corrupt.downstream import TokenTagger
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer

WORDS = "the a cat dog sat ran on under mat rug quick slow".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LABELS = ["D", "N", "V"]
RELATIONS = ["det", "obj", "obl", "root"]
SIZES = {
    "encoder": {
        "character_size": 4,
        "num_filters": 3,
        "hidden_sizes": [6, 5],
        "projection_size": 4,
    },
    "hidden_size": 7,
}
TRANSLATOR = {
    **SIZES,
    "decoder": {"embedding_size": 6, "hidden_sizes": [5, 6], "projection_size": 3},
}
#: What a sentence of `WORDS` is translated to, word by word.
GLOSSES = "der ein Katze Hund saß lief auf unter Matte Teppich schnell langsam".split()
ENCODER = {
    "vocabulary_size": 40,
    "num_layers": 2,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_heads": 2,
    "max_length": 24,
    "initializer_range": 0.2,
}
#: What each view sees of a sentence, for a word.
SEES = {
    "forward": lambda other, word: other <= word,
    "backward": lambda other, word: other >= word,
    "future": lambda other, word: other < word,
    "past": lambda other, word: other > word,
    "full": lambda other, word: True,
}


@pytest.fixture(autouse=True, scope="module")
def few_steps(eager):
    """Tests of this folder make few."""


def make_tagger(**arguments):
    arguments = {"words": WORDS, "characters": LETTERS, "labels": LABELS} | arguments
    return CrossViewTagger(**{**SIZES, **arguments})


@pytest.fixture
def tagger():
    return make_tagger()


def make_parser(**arguments):
    arguments = {"words": WORDS, "characters": LETTERS, "labels": RELATIONS} | arguments
    return CrossViewParser(**{**SIZES, **arguments})


@pytest.fixture
def parser():
    return make_parser()


def make_translator(**arguments):
    arguments = {"words": WORDS, "characters": LETTERS, "labels": GLOSSES} | arguments
    return CrossViewTranslator(**{**TRANSLATOR, **arguments})


@pytest.fixture
def translator():
    return make_translator()


def translations_of(sentences):
    """Translates each word by its gloss, from the last word to the first."""
    gloss = dict(zip(WORDS, GLOSSES, strict=True))
    return [" ".join(gloss[word] for word in words[::-1]) for words in sentences]


def make_image_classifier(**arguments):
    """A model of small images, whose preprocessing is quick."""
    sizes = {"image_shape": (16, 20, 3), "channels": [4, 5, 4, 5, 4, 5, 6, 5, 4]}
    arguments = {"labels": ["a", "b", "c"], "preprocessing": "colours"} | arguments
    return CrossViewImageClassifier(**{**sizes, **arguments})


def make_token_tagger(dropout=0.1, **arguments):
    """A model whose tokenizer cuts some words into several pieces."""
    pieces = "the a cat do ##g s ##at ran on un ##d ##er mat rug qu ##ick sl ##ow"
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *pieces.split()])
    tagger = TokenTagger(ENCODER, tokenizer, labels=LABELS, dropout=dropout)
    return CrossViewTokenTagger(tagger, **arguments)


def one_batch(model, sentences, tags=None):
    """The inputs and targets of a batch of all these sentences."""
    labels = None if tags is None else np.concatenate(tags)
    return model.batches(Sentences(sentences), labels, len(sentences)).batch(0)


def sentences_of(count, longest=9, seed=0):
    """Random sentences of known words, and a tag for each."""
    rng = np.random.default_rng(seed)
    sentences = [
        list(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(count)
    ]
    sentences = [[str(word) for word in words] for words in sentences]
    tags = [[int(WORDS.index(w) > 1) + (w in WORDS[4:6]) for w in s] for s in sentences]
    return sentences, tags


def trees_of(sentences):
    """A tree for each sentence: all depend on the first word of those longest."""
    trees = []
    for words in sentences:
        root = max(range(len(words)), key=lambda i: len(words[i]))
        relations = [RELATIONS[min(len(word) // 3, 2)] for word in words]
        tree = [(root + 1, relation) for relation in relations]
        tree[root] = 0, "root"
        trees.append(tree)
    return trees


def batch_of_trees(parser, sentences, trees=None):
    """The inputs and targets of a batch of all these sentences."""
    classes = None if trees is None else parser.classes_of(trees)
    return parser.batches(Sentences(sentences), classes, len(sentences)).batch(0)
