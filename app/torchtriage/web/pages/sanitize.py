"""Converts text from logs into safe HTML in which nothing is hidden."""

from __future__ import annotations

from datetime import UTC, datetime

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.strip import ANSI
from torchtriage.services.line_patterns import spans
from torchtriage.web.pages.ansi_colours import Style

_UNITS = {"s": "秒", "min": "分钟", "h": "小时"}
_SGR = lazy_regex("\x1b\\[([0-9;:]*)m")
# Characters that show as nothing, or turn the text around them: controls, bidi marks, zero-width signs, tags.
_HIDDEN = lazy_regex(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: object) -> Markup:
    """Returns `text` as HTML: escaped, without colors, with hidden characters shown as marks."""
    plain = ANSI.sub("", str(text))
    parts: list[Markup] = []
    end = 0
    for found in _HIDDEN.finditer(plain):
        parts.append(escape(plain[end : found.start()]))
        parts.append(Markup("<span class=ctl>{}</span>").format(_name(found[0])))
        end = found.end()
    parts.append(escape(plain[end:]))
    return Markup().join(parts)


def coloured(text: object, words: str | None = None, regex: bool = False) -> Markup:
    """Returns the same with the log's colors as classes and with `words`, which may be a regular expression,
    highlighted regardless of case."""
    line, parts, end, style = str(text), [], 0, Style()
    for found in ANSI.finditer(line):
        parts.append(style.around(_with_marks(line[end : found.start()], words, regex)))
        if sgr := _SGR.fullmatch(found[0]):
            style = style.after(sgr[1])
        end = found.end()
    parts.append(style.around(_with_marks(line[end:], words, regex)))
    return Markup().join(parts)


def prose(text: object) -> Markup:
    """Returns a text of several lines as HTML. Only its line feeds are kept."""
    return Markup("\n").join(visible(line) for line in str(text).split("\n"))


def coded(text: object) -> Markup:
    """Returns a sentence as HTML. Text between backticks becomes code."""
    code, parts = Markup('<code translate="no">{}</code>'), str(text).split("`")
    return Markup().join(code.format(visible(part)) if at % 2 else visible(part) for at, part in enumerate(parts))


def moment(at: datetime) -> str:
    """Formats a time in UTC. The page's script converts it to the reader's time zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


@pass_context
def duration(context: Context, seconds: float) -> str:
    """Formats a duration in the page's language: 0.25 gives `0.25 s`, 600 `10 min`, 90000 `25.0 h`."""
    value, unit = (f"{seconds:.3g}", "s") if seconds < 120 else (f"{seconds / 60:.0f}", "min")
    if seconds >= 7200:
        value, unit = f"{seconds / 3600:.1f}", "h"
    return f"{value} {_UNITS[unit] if context['lang'] == 'zh' else unit}"


def hours(count: float) -> str:
    """Formats a number of hours: 0.04 gives `0.04`, 3.25 `3.2`, 1234.5 `1,234`."""
    return f"{count:,.0f}" if count >= 100 else f"{count:.1f}" if count >= 0.1 or not count else f"{count:.2f}"


def percent(share: float) -> str:
    """Formats a share: 0.8 gives `80 %`, 0.004 `< 1 %`."""
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def _with_marks(plain: str, words: str | None, regex: bool) -> Markup:
    if not words:
        return visible(plain)
    parts, end = [], 0
    for start, stop in spans(plain, words, regex):
        parts += [visible(plain[end:start]), Markup("<mark>{}</mark>").format(visible(plain[start:stop]))]
        end = stop
    return Markup().join([*parts, visible(plain[end:])])


def _name(char: str) -> str:
    """Returns the notation of terminals and pagers: `^M` for a carriage return, `<U+202E>` for other characters."""
    code = ord(char)
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"<U+{code:04X}>"
