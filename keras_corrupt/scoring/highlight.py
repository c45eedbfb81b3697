"""Texts as a person reads them, with the words marked that may have been replaced."""

#: From which probability on a word is marked, and its colour of 256 in a terminal.
SHADES = {0.25: 229, 0.5: 220, 0.75: 208}


def highlight(text, words, color=False):
    r"""Marks the words of a text that are likely to have been replaced.

    Args:
        text: The text.
        words: Its words, `WordScore`.
        color: Whether to colour words, by a terminal's codes, and not to write
            `<word 0.93>`.

    Returns:
        The text, changed in nothing else.

    Example:

    >>> from keras_corrupt.scoring import WordScore
    >>> words = [WordScore("A", 0, 1, 0.02), WordScore("because", 2, 9, 0.931)]
    >>> highlight("A because.", words)
    'A <because 0.93>.'
    >>> highlight("A because.", words, color=True)
    'A \x1b[30;48;5;208mbecause\x1b[0m.'
    """
    marked, end = "", 0
    for word in words:
        reached = [shade for limit, shade in SHADES.items() if word.score >= limit]
        if reached:
            mark = f"<{word.text} {word.score:.2f}>"
            if color:
                mark = _colored(word.text, reached[-1])
            marked += text[end : word.start] + mark
            end = word.end
    return marked + text[end:]


def legend():
    """Returns a line that explains the colours."""
    shades = [_colored(f" {limit} ", shade) for limit, shade in SHADES.items()]
    return f"{' '.join(shades)} or more: the probability that a word was replaced"


def _colored(text, shade):
    return f"\x1b[30;48;5;{shade}m{text}\x1b[0m"
