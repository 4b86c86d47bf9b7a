"""Logs whose lines something set otherwise: doubled, put into columns or beside others, broken or cut at one width.

The first lines of a file in, what undoes it out; then all lines in, those that were written out, with their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchtriage.reading.unwrap.hard_wrap import FEWEST, LABELS, WIDEST, doubled, joined, labelled_width, single, width
from torchtriage.reading.unwrap.rich_columns import in_columns, logged
from torchtriage.reading.unwrap.tmux_panes import BARS, apart, bars
from torchtriage.reading.unwrap.word_wrap import filled, unfilled

Undo = Callable[[Sequence[str]], tuple[list[str], list[int]]]
_BARS = tuple(bar.encode() for bar in BARS)
_LABELS = tuple(b"\n" + label.encode() for label in LABELS)
_SOME = 40  # lines by which most files are told


def setting(lines: Sequence[bytes], words: bool = True) -> Undo | None:
    """-> what gives back the lines of a file that begins with `lines` as they were written; None where they are so.
    `words`: they may have been broken between words, or doubled."""
    if words and len(lines) > 1 and not lines[1].strip() and doubled([line.decode("latin-1") for line in lines]):
        return single
    return _beside(lines) or _broken(lines, words)


def _beside(lines: Sequence[bytes]) -> Undo | None:
    """-> what takes apart what stands side by side, which few files show at all."""
    some = lines[:_SOME]
    paned = any(sum(bar in line for line in some) * 2 > len(some) for bar in _BARS)
    padded = sum(line.endswith(b"  ") or b".py:" in line[-16:] for line in some)
    if not paned and padded < FEWEST:
        return None
    told = _decoded(lines)
    if paned and (places := bars(told)):
        return lambda every: apart(every, places)
    return logged if in_columns(told) else None


def _broken(lines: Sequence[bytes], between: bool) -> Undo | None:
    """-> what joins lines that were cut at one width or between words; a file with a long line was not cut, which most
    often shows soon."""
    lengths = list(map(len, lines))
    widest = max(lengths, default=0)
    if widest > 4 * WIDEST:
        return None
    exact = (widest <= WIDEST and lengths.count(widest) >= FEWEST) or not all(map(bytes.isascii, lines))
    longest = max(lines[:WIDEST], key=len, default=b"")
    words = between and (len(longest) <= WIDEST // 2 or b" " not in longest.strip(b"> \t"))
    told = _decoded(lines if exact else lines[:WIDEST] if words else ())
    if words and (at := filled(told)) is not None:
        return lambda every: unfilled(every, at)
    cut = width(told) if exact else None
    if cut is None and between and any(map(b"\n".join(lines).__contains__, _LABELS)):
        cut = labelled_width(_decoded(lines))
    return None if cut is None else lambda every: joined(every, cut)


def _decoded(lines: Sequence[bytes]) -> list[str]:
    text = b"\n".join(lines).decode("utf-8", "replace")  # All at once takes a tenth of the time.
    told = text.split("\n") if lines else []
    return [line.rstrip("\r") for line in told] if "\r" in text else told
