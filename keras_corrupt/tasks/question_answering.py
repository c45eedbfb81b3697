"""Questions about a text, and answers that are parts of it."""

from typing import NamedTuple


class Question(NamedTuple):
    """A question, and the text that may hold its answer."""

    question: str
    context: str


class Answer(NamedTuple):
    """A predicted answer.

    Attributes:
        text: The best span, a part of the context.
        start: The character of the context where it starts.
        score: Its score; more is better.
        null_odds: Log-odds that there is no answer; `None` where there always is one.
        candidates: The best spans with different texts, as (text, start, score).
    """

    text: str
    start: int
    score: float
    null_odds: float | None = None
    candidates: tuple = ()

    @property
    def null_probability(self):
        """The probability that there is no answer; 0 where there always is one."""
        from scipy.special import expit  # not above: help needs no SciPy

        if self.null_odds is None:
            return 0.0
        return float(expit(self.null_odds))

    def __str__(self):
        return self.final_text()

    def final_text(self, threshold=0.5):
        """Returns the text, or `""` if `null_probability` exceeds the threshold.

        >>> answer = Answer("a mat", 19, score=-0.1, null_odds=1.0)
        >>> answer.final_text(), answer.final_text(threshold=0.8)
        ('', 'a mat')
        """
        return "" if self.null_probability > threshold else self.text
