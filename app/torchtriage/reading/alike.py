"""Lines that differ in digits alone: where one tells its rank and its time, the others tell theirs."""

from __future__ import annotations

from typing import NamedTuple

from torchtriage.reading.prefixes.known import RANKED, may_begin
from torchtriage.reading.prefixes.strip import OWN_RANK, Origin
from torchtriage.reading.prefixes.times import spelled, stamp_in

_LONGEST = 200  # characters of a line whose form is remembered
_FAR = 120  # characters in which a line tells its time
_ANY_DIGIT = bytes.maketrans(b"123456789", b"000000000")


class Own(NamedTuple):
    """Where a line tells its rank and its time, None where it does not; `begin`: where its text begins, behind torch's
    own label of the rank, or 0 where nothing stands before it."""

    begin: int
    rank: slice | None
    time: slice | None


PLAIN = Own(0, None, None)


def forms(lines: list[str]) -> list[bytes]:
    """-> the lines without what their digits are; all at once, as bytes, which takes a tenth of the time."""
    return "\n".join(lines).encode("utf-8", "replace").translate(_ANY_DIGIT).split(b"\n")


def own(raw: str, origin: Origin) -> Own | None:
    """-> where a line, of which `take_off` told `origin`, tells what it tells, and all lines of its form with it; None
    where another label stands before it, or where other digits may be told otherwise."""
    label = RANKED.match(raw) if raw.startswith("[rank") and origin.text is not raw else None
    begin, writer = (label.end(), f"{label['rank']}/") if label else (0, "")
    text = raw[begin:]
    alone: bool = origin == (text, origin.rank, None, None, origin.time, writer, None, None)
    if len(raw) > _LONGEST or not alone:
        return None
    rank = slice(*label.span("rank")) if label else _rank_in(raw, origin)
    if origin.time is None:
        if may_begin(text) or text.count(":", 0, _FAR) > 1:
            return None
        return Own(begin, rank, None) if rank else PLAIN
    time = stamp_in(text)
    if time is None or spelled(text[time]) != origin.time:
        return None
    return Own(begin, rank, slice(begin + time.start, begin + time.stop))


def like(raw: str, own: Own) -> tuple[str, int | None, str | None, str]:
    """-> text, rank, time and writer of a line of a known form."""
    begin, rank, time = own
    writer = raw[rank] if rank else ""
    stamp = spelled(raw[time]) if time else None
    if begin:
        return raw[begin:], int(writer), stamp, f"{writer}/"
    return raw, int(writer) if writer else None, stamp, ""


def _rank_in(raw: str, origin: Origin) -> slice | None:
    told = OWN_RANK.match(raw) if origin.rank is not None else None
    return slice(*told.span(told.lastindex or 0)) if told else None
