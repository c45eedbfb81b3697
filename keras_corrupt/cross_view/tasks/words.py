"""How plain text becomes words, and how the words of a translation become text."""

import re

# As the Penn Treebank divides them: ca|n't, it|'s, but near-record and 1,000.5.
_WORD = re.compile(
    r"\w+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b"
    r"|\w\.(?:\w\.)+|\w+(?:[-./,&]\w+)*|\.\.\.|--|[^\w\s]"
)
# By no language's rules.
_PART = re.compile(r"\w+(?:[-./,&'’]\w+)*|[^\w\s]")

#: Begins a word that follows the one before it without a space.
JOINED = "￭"


def split_words(text):
    """Divides a sentence into words, by rules for English.

    >>> split_words("It can't be 1,000.5 near-misses!")
    ['It', 'ca', "n't", 'be', '1,000.5', 'near-misses', '!']
    """
    return _WORD.findall(text)


def split_joined(text):
    """Divides a sentence so that `join_words` gives it back, but for its spaces.

    >>> split_joined("Er sagt (leise): Nein!")
    ['Er', 'sagt', '(', '￭leise', '￭)', '￭:', 'Nein', '￭!']
    """
    parts, end = [], None
    for match in _PART.finditer(text.replace(JOINED, "")):
        parts.append((JOINED if match.start() == end else "") + match[0])
        end = match.end()
    return parts


def join_words(words):
    """Makes text of what `split_joined` returned, or of words like these.

    >>> join_words(["Er", "sagt", "(", "￭leise", "￭)", "￭:", "Nein", "￭!"])
    'Er sagt (leise): Nein!'
    """
    return "".join(
        word.removeprefix(JOINED) if word.startswith(JOINED) else f" {word}"
        for word in words
    ).removeprefix(" ")
