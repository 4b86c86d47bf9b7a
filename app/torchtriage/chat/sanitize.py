"""Foreign text for a message: a log's text in, one line of a bounded length out that hides nothing and no secret."""

from __future__ import annotations

import unicodedata

from torchtriage.reading.prefixes.strip import ANSI
from torchtriage.reading.redaction.redact import redact

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}  # controls, bidi and zero-width marks, half pairs, private use
_ROOM = 1000  # characters after the cut that are looked at too, as a secret may stand across it


def plain(text: object, most: int) -> str:
    """-> `text` in one line of at most `most` characters; characters that don't show are told by their numbers."""
    raw = ANSI.sub("", str(text)[: 4 * most + _ROOM])
    shown = redact("".join(_shown(char) for char in raw)).split()
    return cut(" ".join(shown), most)


def cut(text: str, most: int) -> str:
    """-> at most `most` characters; an ellipsis says that there were more."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def cut_bytes(text: str, most: int) -> str:
    """-> at most `most` bytes of UTF-8, and no part of a character."""
    data = text.encode()
    return text if len(data) <= most else data[: most - 3].decode(errors="ignore").rstrip() + "…"


def _shown(char: str) -> str:
    if char.isspace():
        return " "
    return f"<U+{ord(char):04X}>" if unicodedata.category(char) in _HIDDEN else char
