"""Makes log text safe for a brief: removes markup and cursor movements."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchtriage.reading.prefixes.strip import ANSI


def visible(text: str, most: int) -> str:
    """Returns text from a log as one line of at most `most` characters."""
    text = ANSI.sub("", text[: 4 * most]).replace("\t", "    ").rstrip()
    shown = "".join(char if char.isprintable() else "·" for char in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def plain(text: str, most: int = 600) -> str:
    """Returns a sentence that may contain words from a log, as Markdown that loads and links nothing."""
    return re.sub(r"(<|\](?=\())", r"\\\1", visible(" ".join(text.split()), most))


def code(text: str, most: int) -> str:
    """Returns text from a log between backticks."""
    shown = " ".join(visible(text, most).split())
    ticks = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    blank = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{blank}{shown}{blank}{ticks}"


def place(line: int | None, file: str | None, words: Mapping[str, str]) -> str:
    """Returns the place of a line in words, or an empty text if there is none."""
    if line is None:
        return ""
    return words["line_of"].format(line=line, file=visible(file, 120)) if file else words["line"].format(line=line)
