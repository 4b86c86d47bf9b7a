"""Makes text from a log safe for a message: one line of limited length, without secrets and hidden characters."""

from __future__ import annotations

import unicodedata

from torchtriage.reading.prefixes.strip import ANSI
from torchtriage.reading.redaction.redact import redact

# Unicode categories: controls, bidi and zero-width marks, surrogates, private use.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_ROOM = 1000  # characters after the cut that are searched for secrets too, because a secret may begin before it


def plain(text: object, most: int) -> str:
    """Returns `text` as one line of at most `most` characters. Hidden characters become their numbers."""
    raw = ANSI.sub("", str(text)[: 4 * most + _ROOM])
    shown = redact("".join(_shown(char) for char in raw)).split()
    return cut(" ".join(shown), most)


def cut(text: str, most: int) -> str:
    """Returns at most `most` characters; an ellipsis replaces the rest."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def cut_bytes(text: str, most: int) -> str:
    """Returns at most `most` bytes of UTF-8, without splitting a character."""
    data = text.encode()
    return text if len(data) <= most else data[: most - 3].decode(errors="ignore").rstrip() + "…"


def _shown(char: str) -> str:
    if char.isspace():
        return " "
    return f"<U+{ord(char):04X}>" if unicodedata.category(char) in _HIDDEN else char
