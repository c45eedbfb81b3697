"""A text is a `str` of whole characters. Anything else is refused, not guessed."""

import re
from collections.abc import Iterable, Mapping, Sequence

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_KINDS = {
    (1,): "a string",
    (2,): "a pair of strings",
    (1, 2): "a string or a pair of strings",
    (1, 2, 3): "a string, or a pair or three of strings",
}


def text_list(texts: Iterable[str], name: str = "texts") -> list[str]:
    """Makes a list of texts, and checks each.

    Args:
        texts: Strings.
        name: The caller's argument, for messages.

    Returns:
        The same strings.

    Raises:
        ValueError: If it is one text and no list, or something in it is no text.

    Example:
    >>> text_list(["a cat", b"a cat"])
    Traceback (most recent call last):
    ValueError: `texts[1]` is bytes, b'a cat'. Decode it: text.decode("utf-8").
    """
    texts = listed(texts, name)
    try:
        "".join(texts).encode("utf-8")  # by far the fastest check
    except (TypeError, UnicodeEncodeError):
        for number, text in enumerate(texts):
            check_text(text, f"{name}[{number}]")
    return texts


def text_tuples(
    examples: Iterable[str | Sequence[str]],
    name: str = "texts",
    sizes: tuple[int, ...] = (1, 2),
) -> list[tuple[str, ...]]:
    """Makes a list of texts and pairs of texts, and checks each.

    Args:
        examples: Strings, and lists or tuples of strings.
        name: The caller's argument, for messages.
        sizes: How many strings an example may have, a key of `_KINDS`.

    Returns:
        The strings of each.

    Raises:
        ValueError: If it is one text and no list, or an example is something else.

    Example:
    >>> text_tuples(["a cat", ("it", "sleeps")])
    [('a cat',), ('it', 'sleeps')]
    """
    return [
        text_tuple(example, f"{name}[{number}]", sizes)
        for number, example in enumerate(listed(examples, name))
    ]


def text_tuple(
    example: str | Sequence[str], name: str, sizes: tuple[int, ...] = (1, 2)
) -> tuple[str, ...]:
    """Makes a tuple of one example; see `text_tuples`."""
    if isinstance(example, (str, bytes)) and 1 in sizes:
        check_text(example, name)
        return (example,)
    if not isinstance(example, (list, tuple)) or len(example) not in sizes:
        raise ValueError(f"`{name}` must be {_KINDS[sizes]}; got {example!r:.200}.")
    for place, text in enumerate(example):
        check_text(text, f"{name}[{place}]")
    return tuple(example)


def word_lists(
    sentences: Iterable[Sequence[str]], name: str = "sentences"
) -> list[Sequence[str]]:
    """Makes a list of sentences in words, and checks each.

    Args:
        sentences: Lists or tuples of strings.
        name: The caller's argument, for messages.

    Returns:
        The same sentences.

    Raises:
        ValueError: If it is one text and no list, or a sentence is something else.
    """
    sentences = listed(sentences, name)
    for number, words in enumerate(sentences):
        check_words(words, f"{name}[{number}]")
    return sentences


def check_words(words: Sequence[str], name: str) -> None:
    """Checks one sentence; see `word_lists`."""
    if not isinstance(words, (list, tuple)):
        raise ValueError(
            f"`{name}` must be a list of words, each a string; got {words!r:.200}. "
            "Split the sentence into words first."
        )
    for place, word in enumerate(words):
        check_text(word, f"{name}[{place}]")


def listed(items: Iterable, name: str) -> list:
    """Makes a list; raises a `ValueError` where it would be one of letters, or keys."""
    no_list = isinstance(items, (str, bytes)) or not isinstance(items, Iterable)
    if no_list or getattr(items, "ndim", 1) != 1 or isinstance(items, Mapping):
        raise ValueError(f"`{name}` must be a list; got {items!r:.200}.")
    return list(items)


def check_text(text: str, name: str = "text") -> None:
    """Checks that something is a text.

    Args:
        text: The value to check.
        name: The caller's argument, for messages.

    Raises:
        ValueError: If it is no string, or holds half a surrogate pair, which is no
            character.
    """
    if isinstance(text, bytes):
        raise ValueError(
            f'`{name}` is bytes, {text!r:.200}. Decode it: text.decode("utf-8").'
        )
    if not isinstance(text, str):
        raise ValueError(f"`{name}` must be a string; got {text!r:.200}.")
    if half := _HALF_PAIR.search(text):
        raise ValueError(
            f"`{name}` has half a surrogate pair, U+{ord(half[0]):04X}, at character "
            f"{half.start()}, which is no character. Read the text's source as UTF-8, "
            'or replace it: text.encode("utf-8", "replace").decode("utf-8").'
        )
