"""Converts the colors of terminal escape sequences into CSS classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from markupsafe import Markup

_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "bold"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ()}
_NAMES = ("c-soft", "c-red", "c-green", "c-yellow", "c-blue", "c-magenta", "c-cyan", "c-plain")


@dataclass(frozen=True, slots=True)
class Style:
    """The style of the text after an escape sequence. Background colors are ignored, because the page uses its own."""

    colour: str | None = None
    marks: frozenset[str] = frozenset()

    def after(self, numbers: str) -> Style:
        """Returns the style after an escape sequence with these numbers, such as `1;31`."""
        style = self
        codes = iter([int(code) for code in numbers.replace(":", ";").split(";") if code.isdecimal()] or [0])
        for code in codes:
            style = style._changed(code, codes)
        return style

    def around(self, text: Markup) -> Markup:
        """Returns the text in a span of this style."""
        names = " ".join(filter(None, (self.colour, *sorted(self.marks))))
        return Markup('<span class="{}">{}</span>').format(names, text) if names and text else text

    def _changed(self, code: int, more: Iterator[int]) -> Style:
        if code == 0:
            return Style()
        if code in _ON:
            return replace(self, marks=self.marks | {_ON[code]})
        if code in _OFF:
            return replace(self, marks=self.marks - set(_OFF[code]))
        if code in (38, 48):
            colour = _extended(more)
            return replace(self, colour=colour) if code == 38 else self
        if code == 39:
            return replace(self, colour=None)
        plain = code - 30 if 30 <= code < 38 else code - 90 if 90 <= code < 98 else None
        return self if plain is None else replace(self, colour=_NAMES[plain])


def _extended(more: Iterator[int]) -> str:
    """Returns the closest of our colors to one of the 256 terminal colors or an RGB color."""
    kind, number = next(more, 0), next(more, 0)
    if kind == 2:
        red, green, blue = number, next(more, 0), next(more, 0)
        return _nearest(red, green, blue)
    if number < 16:
        return _NAMES[number % 8]
    if number >= 232:
        return "c-soft" if number < 244 else "c-plain"
    step = 51
    cube = number - 16
    return _nearest(cube // 36 * step, cube // 6 % 6 * step, cube % 6 * step)


def _nearest(red: int, green: int, blue: int) -> str:
    most = max(red, green, blue)
    bits = [value > most / 2 and value > 40 for value in (red, green, blue)]
    return _NAMES[bits[0] + 2 * bits[1] + 4 * bits[2]]
