"""Lines that differ in digits alone: where one has its rank and its time, all others have theirs."""

from __future__ import annotations

from typing import NamedTuple

from torchtriage.reading.prefixes.known import TORCH_RANK, may_begin
from torchtriage.reading.prefixes.strip import OWN_RANK, Origin
from torchtriage.reading.prefixes.times import stamp_in, with_iso_marks

_LONGEST = 200  # characters of a line whose template is remembered
_TIME_WITHIN = 120  # characters in which a line says its time
_DIGITS = bytes.maketrans(b"123456789", b"000000000")


class Template(NamedTuple):
    """Where a line has its rank and its time, None where it has none; `begin`: where its text begins, behind torch's own
    label of the rank, or 0 where nothing precedes it."""

    begin: int
    rank: slice | None
    time: slice | None


PLAIN = Template(0, None, None)


def without_digits(lines: list[str]) -> list[bytes]:
    """-> the lines with every digit as 0; all at once, as bytes, which takes a tenth of the time."""
    return "\n".join(lines).encode("utf-8", "replace").translate(_DIGITS).split(b"\n")


def template_of(raw: str, origin: Origin) -> Template | None:
    """-> where a line, of which `strip_prefixes` gave `origin`, has its rank and its time, and with it all lines that
    differ in digits alone; None where another label precedes it, or where other digits may mean something else."""
    label = TORCH_RANK.match(raw) if raw.startswith("[rank") and origin.text is not raw else None
    begin, stream = (label.end(), f"{label['torch_rank']}/") if label else (0, "")
    text = raw[begin:]
    nothing_else: bool = origin == (text, origin.rank, None, None, origin.time, stream, None, None)
    if len(raw) > _LONGEST or not nothing_else:
        return None
    rank = slice(*label.span("torch_rank")) if label else _rank_in(raw, origin)
    if origin.time is None:
        if may_begin(text) or text.count(":", 0, _TIME_WITHIN) > 1:
            return None
        return Template(begin, rank, None) if rank else PLAIN
    time = stamp_in(text)
    if time is None or with_iso_marks(text[time]) != origin.time:
        return None
    return Template(begin, rank, slice(begin + time.start, begin + time.stop))


def read_by(template: Template, raw: str) -> tuple[str, int | None, str | None, str]:
    """-> text, rank, time and stream of a line that has this template."""
    begin, rank, time = template
    digits = raw[rank] if rank else ""
    stamp = with_iso_marks(raw[time]) if time else None
    if begin:
        return raw[begin:], int(digits), stamp, f"{digits}/"
    return raw, int(digits) if digits else None, stamp, ""


def _rank_in(raw: str, origin: Origin) -> slice | None:
    found = OWN_RANK.match(raw) if origin.rank is not None else None
    return slice(*found.span(found.lastindex or 0)) if found else None
