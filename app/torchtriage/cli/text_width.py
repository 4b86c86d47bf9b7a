"""Measures, wraps and cuts text for a terminal. A Chinese character takes two columns."""

from __future__ import annotations

import unicodedata

from torchtriage.lazy_regex import lazy_regex

_WORD = lazy_regex(
    r"[\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60][，。、：；！？）」』”’]*|\s+|[^\s\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60]+"
)


def columns(text: str) -> int:
    """Returns how many columns a text takes."""
    return sum(_columns(char) for char in text) if not text.isascii() else len(text)


def rows(line: str, width: int) -> int:
    """Returns how many rows a text takes on a terminal of `width` columns."""
    return sum(max(1, -(-columns(part) // width)) for part in line.split("\n"))


def cut(text: str, width: int) -> str:
    """Returns at most `width` columns of a text; the end becomes `…` if it was longer."""
    if columns(text) <= width:
        return text
    kept, used = "", 1
    for char in text:
        used += _columns(char)
        if used > width:
            break
        kept += char
    return kept.rstrip() + "…"


def wrapped(text: str, width: int, inner: int = 0, most: int | None = None) -> list[str]:
    """Returns the text as lines of at most `width` columns, all but the first indented by `inner`. Returns at most
    `most` lines; the last one is cut if there are more."""
    lines, line = [], ""
    for word in _pieces(text, width - inner):
        if line.strip() and columns(line + word.rstrip()) > width:
            lines.append(line.rstrip())
            line = " " * inner + word.lstrip()
        else:
            line += word
    lines.append(line.rstrip())
    if most is not None and len(lines) > most:
        rest = " ".join(line.strip() for line in lines[most - 1 :])
        lines[most - 1 :] = [(" " * inner if most > 1 else "") + cut(rest, width - (inner if most > 1 else 0))]
    return lines


def _pieces(text: str, width: int) -> list[str]:
    """Returns the words, spaces and single Chinese characters of a text. A word wider than `width` is split."""
    found: list[str] = []
    for word in _WORD.findall(" ".join(text.split())):
        while columns(word) > width:
            at = len(word)
            while columns(word[:at]) > width:
                at -= max(1, (columns(word[:at]) - width) // 2)
            found.append(word[:at])
            word = word[at:]
        found.append(word)
    return found


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("F", "W") else 1
