"""What tells one vocabulary from another."""

import hashlib
from collections.abc import Iterable


def sha256(strings: Iterable[str]) -> str:
    """Returns the SHA-256 of lines, in hexadecimal digits.

    Args:
        strings: The lines.

    Returns:
        64 digits.
    """
    return hashlib.sha256("\n".join(strings).encode("utf-8")).hexdigest()
