"""Foreign text made safe to look at: a log's text in, the same as HTML out, with nothing hidden in it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

from app.reading.prefixes import ANSI

# Characters that show as nothing, or turn the text around them: controls, bidi marks, zero-width signs, tags.
_HIDDEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: object) -> Markup:
    """-> `text` as HTML: escaped, colours taken off, hidden characters shown as marks."""
    plain = ANSI.sub("", str(text))
    parts: list[Markup] = []
    end = 0
    for found in _HIDDEN.finditer(plain):
        parts.append(escape(plain[end : found.start()]))
        parts.append(Markup("<span class=ctl>{}</span>").format(_name(found[0])))
        end = found.end()
    parts.append(escape(plain[end:]))
    return Markup().join(parts)


def prose(text: object) -> Markup:
    """-> a text of several lines as HTML; only its line feeds stay what they are."""
    return Markup("\n").join(visible(line) for line in str(text).split("\n"))


def size(count: int) -> str:
    """-> bytes for people: 100000 gives `97.7 KB`."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KB", "MB", "GB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TB"


def moment(at: datetime) -> str:
    """-> a point in time for people, in UTC; the page's script turns it into the reader's zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def log_time(time: str | None) -> str | None:
    """-> a time that a log tells, for people: to the second, in the zone that the log is written in."""
    return re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?", r"\1 \2", time) if time else None


def _name(char: str) -> str:
    """-> how terminals and pagers write it: `^M` for a carriage return, `<U+202E>` for what has no key."""
    code = ord(char)
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"<U+{code:04X}>"
