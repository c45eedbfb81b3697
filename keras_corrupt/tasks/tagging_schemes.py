"""Spans as tags of words: IOB1, BIO (IOB2), BIOES and BILOU read, two written."""

#: Scheme -> first letter of the tag of a span's first, inner, last and only word.
SCHEMES = {"bio": "BIIB", "bioes": "BIES"}


def spans(tags):
    """Reads the spans that tags of any of the schemes mean.

    Invalid sequences are read as the CoNLL shared tasks' evaluation does: a span
    begins wherever a word is tagged and does not go on with the span before it. That
    also is the rule of IOB1, where spans begin with `I`.

    Args:
        tags: The tags of a sentence: `O`, or a letter of B, I, E, S, L, U and what
            the span is, such as `I-NP`.

    Returns:
        A list of `(label, start, stop)` in words, `label` with its hyphen.

    >>> spans(["I-NP", "I-NP", "B-NP", "O", "I-VP"])
    [('-NP', 0, 2), ('-NP', 2, 3), ('-VP', 4, 5)]
    """
    triples, previous = [], "O"
    for i, tag in enumerate(tags):
        goes_on = tag[0] in "IEL" and previous[0] in "BI" and tag[1:] == previous[1:]
        if goes_on:
            label, start, _ = triples.pop()
            triples.append((label, start, i + 1))
        elif tag != "O":
            triples.append((tag[1:], i, i + 1))
        previous = tag
    return triples


def convert(tags, scheme):
    """Writes the spans of tags in another scheme.

    Args:
        tags: The tags of a sentence, as `spans` reads them.
        scheme: `"bio"` or `"bioes"`.

    Returns:
        The tags, as many.

    >>> convert(["I-NP", "I-NP", "B-NP"], "bioes")
    ['B-NP', 'E-NP', 'S-NP']
    """
    first, inner, last, only = SCHEMES[scheme]
    converted = ["O"] * len(tags)
    for label, start, stop in spans(tags):
        letters = (
            only if stop - start == 1 else first + inner * (stop - start - 2) + last
        )
        converted[start:stop] = [letter + label for letter in letters]
    return converted


def is_span_tag(tag):
    """Returns whether a tag is of one of the schemes that `spans` reads.

    >>> is_span_tag("B-NP"), is_span_tag("O"), is_span_tag("NOUN")
    (True, True, False)
    """
    return tag == "O" or tag[:1] in tuple("BIESLU") and tag[1:2] in ("", "-")
