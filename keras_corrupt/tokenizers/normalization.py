"""Normalisation of text before it is cut into tokens."""

from tokenizers import normalizers


def case_and_accents(lowercase: bool, strip_accents: bool) -> list:
    """Returns the steps that lower-case text and strip it of accents, as BERT does.

    Args:
        lowercase: Whether to lower-case text.
        strip_accents: Whether to remove combining marks of no width (é to e).

    Returns:
        Normalisers of the `tokenizers` library, none where nothing is to be done.
    """
    if not (lowercase or strip_accents):
        return []
    bert = normalizers.BertNormalizer(
        clean_text=False,
        handle_chinese_chars=False,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    # Stripping accents decomposes letters; the last step puts the others together.
    return [bert, normalizers.NFC()] if strip_accents else [bert]


def normalization_flags(normalizer) -> dict[str, bool]:
    """Finds out what a normaliser does by asking it about two letters.

    Args:
        normalizer: A normalizer of the `tokenizers` library, or None.

    Returns:
        `lowercase` and `strip_accents`.

    Example:
    >>> normalization_flags(normalizers.Sequence(case_and_accents(True, False)))
    {'lowercase': True, 'strip_accents': False}
    """
    if normalizer is None:
        return {"lowercase": False, "strip_accents": False}
    accented = normalizer.normalize_str("é")
    return {
        "lowercase": "a" in normalizer.normalize_str("A"),
        "strip_accents": "e" in accented and "\u0301" not in accented,
    }
