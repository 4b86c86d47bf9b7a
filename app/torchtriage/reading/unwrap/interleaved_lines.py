"""Removes lines that other programs inserted between those of a log: names and times of a chat, headers of a
supervisor, bars of a terminal, and an empty line after each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import (
    MAX_BYTES,
    Decode,
    Decoded,
    Decoder,
    Head,
    from_layout,
    from_lines,
    numbered_lines,
)  # fmt: skip

_MIN_COUNT = 2
_MIN_DOUBLED_LINES = 6  # lines, every second one of them empty
_SAMPLE = 16 << 10  # bytes in which the first of them must be
_FIRST = 400  # bytes in which the first line of a chat ends
# Each such line contains one of these literals, unless it begins the file. Most files contain none.
_HINTS = (b"M\n", b"--More--", b" output:\n")
_DATE = r"(?:\d{4}[/.-]\d{1,2}[/.-]\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4})"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?"
_BETWEEN = lazy_regex(
    rf"[^\W\d_][^\W\d_]*(?:[ .'-][^\W\d_]+){{0,4}} {{1,3}}{_CLOCK}"  # Slack
    rf"|[^\W\d_]\S{{0,20}}(?: \S{{1,20}})? (?:{_DATE} {_CLOCK}|[—–-] (?:Today|Yesterday) at {_CLOCK})"  # WeChat, Discord
    rf"|\[{_DATE},? {_CLOCK}\] [^\W\d_][^:=\[\]\d]{{0,40}}:?"  # Teams, WhatsApp
    rf"|[^\W\d_][\w ]{{0,40}}, \[{_DATE},? {_CLOCK}\]"  # Telegram
    r"|--More--(?:\(\d+%\))?|\(END\)"
    r"|\[\d+\] (?:\d+:\S+[*-]?\s+){1,9}\"[^\"]{1,80}\" \d\d:\d\d \S+"  # tmux
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ DEBG '[^']{1,80}' std(?:out|err) output:"  # supervisord
)


def _recognise_others_lines(head: Head) -> Decode | None:
    sample = head.sample
    begin = sample[:_SAMPLE]
    first = sample[:_FIRST].decode("utf-8", "replace").partition("\n")[0]
    if not any(hint in begin for hint in _HINTS) and not _BETWEEN.fullmatch(first.rstrip("\r ")):
        return None
    lines = sample.decode("utf-8", "replace").split("\n")
    found = [_BETWEEN.fullmatch(line.rstrip("\r ")) is not None for line in lines]
    # Consecutive matches are lines of a log that begin with their times. Inserted lines have the line that they
    # introduce below them.
    in_a_row = sum(above and below for above, below in pairwise(found))
    return _decode_others_lines if sum(found) >= _MIN_COUNT and in_a_row * 2 < sum(found) else None


def _decode_others_lines(content: bytes) -> Decoded:
    return from_lines(_own_lines(content))


def _own_lines(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) for each line that belongs to the log itself."""
    below_other = False
    for number, line in numbered_lines(content):
        if _BETWEEN.fullmatch(line.rstrip(" ")):
            below_other = True
        elif line.strip() or not below_other:
            yield number, line
            below_other = False


def _recognise_blank_lines(head: Head) -> Decode | None:
    lines = head.lines
    if len(lines) < _MIN_DOUBLED_LINES or lines[1].strip():
        return None
    # As text, because more characters count as blank there than in bytes.
    texts = [line.decode("latin-1") for line in lines]
    doubled = not any(map(str.strip, texts[1::2])) and any(map(str.strip, texts[::2]))
    return from_layout(without_blank_lines) if doubled else None


def without_blank_lines(lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """Returns the lines without the empty ones between them, and the line number of each."""
    kept = [(line, number) for number, line in enumerate(lines, 1) if number % 2 or line.strip()]
    return [line for line, _ in kept], [number for _, number in kept]


OTHERS_LINES = Decoder("lines of others between", _recognise_others_lines, largest=MAX_BYTES, compares_lines=True)
BLANK_LINES = Decoder("an empty line below each", _recognise_blank_lines, compares_lines=True)
