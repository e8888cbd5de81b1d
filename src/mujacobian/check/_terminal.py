"""Text from files, made safe for a terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str, keep: str = "") -> str:
    """Return `text` with escaped control and format characters, which could command a terminal."""
    return "".join(
        c if c in keep or not unicodedata.category(c).startswith("C") else ascii(c)[1:-1]
        for c in text
    )
