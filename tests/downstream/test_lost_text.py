"""Fine-tuning tells how much of the examples the preset's vocabulary loses."""

import pytest

from keras_corrupt.downstream.finetuner import Finetuner
from keras_corrupt.tasks.question_answering import Question
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from keras_corrupt.tokenizers.lost_text import describe_lost
from tests.downstream.conftest import animals

TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "cat", "sat"])


@pytest.mark.parametrize(
    "examples",
    [
        ["a cat sat", "zebras"],
        [("a cat", "sat"), ("zeb", "ras")],
        [["a", "cat", "sat"], ["zebras"]],
        [Question("a", "cat sat"), Question("zebras", "")],
    ],
)
def test_a_share_of_the_characters(examples):
    """Six of thirteen, in whichever form the examples are."""
    assert describe_lost(TOKENIZER, examples).startswith("46.2% of the characters")
    assert describe_lost(TOKENIZER, examples[:1]) is None


def test_the_banner_has_it(config):
    assert "lost:" not in Finetuner(animals(), config).banner()
    task = animals()
    task.splits["train"].examples[:] = ["เด็กกินข้าว"] * len(task.splits["train"].examples)
    (line,) = [s for s in Finetuner(task, config).banner().splitlines() if "lost" in s]
    assert "100.0% of the characters, which the preset's vocabulary does not" in line
