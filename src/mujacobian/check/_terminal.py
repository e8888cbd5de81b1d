"""Text from files on a terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str, keep: str = "") -> str:
    """`text` with control and format characters escaped: names must not command a terminal."""
    return "".join(
        c if c in keep or not unicodedata.category(c).startswith("C") else ascii(c)[1:-1]
        for c in text
    )
