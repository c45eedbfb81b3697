import pytest

from keras_corrupt.data.corpus import open_corpus
from keras_corrupt.tokenizers import KINDS

#: What tokenizers stumble over.
ODD = [
    "",
    "   ",
    "  two  spaces, and\ttabs ",
    "[MASK] <mask> [CLS] </s> [SEP]",
    "CAFÉ cafe\u0301 naïve Łódź",
    "語言 हिन्दी 한국어 ｆｕｌｌ ﬁne",
    "(don't) well-known $23.50... 😀😀",
    "x\u200by \u00a0z\u3000 \u2028",
]


@pytest.fixture(scope="session")
def lines():
    source = open_corpus("python-docs")[0].lines()
    return [line for _, (_, line) in zip(range(3000), source, strict=False)]


@pytest.fixture(scope="session")
def trained(lines):
    """Kind -> a cased tokenizer of 1,000 tokens."""
    flags = {"lowercase": False, "strip_accents": False}
    return {name: cls.train(lines, 1000, **flags) for name, cls in KINDS.items()}


@pytest.fixture(params=KINDS)
def any_kind(request, trained):
    return trained[request.param]
