"""Decodes files without line feeds: with line ends of old Macs or of Unicode, or with blanks only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import (
    MAX_BYTES,
    Decode,
    Decoded,
    Decoder,
    Head,
    from_lines,
    numbered_lines,
)

_MIN_COUNT = 4  # line ends
_MIN_JOINED_LENGTH = 400  # bytes of a line into which several were joined
_SAMPLE = 8 << 10  # bytes in which such lines are searched
_MIN_BEGINNINGS = 5  # beginnings of lines in a joined line
_ENDS = (b"\r", "\u2028".encode(), "\x85".encode())
# Progress output that returns to the start of the line and overwrites it.
_BAR = lazy_regex(rb"%\||\d(?:it/s|s/it)[,\]]|\d \[=*>?\.*\] - ")
# Texts that only begin a line.
_BEGINS = (
    r"(?:\[(?:rank|default)\d{1,6}\]:|Traceback \(most recent|(?: {2})?File \"[^\"]+\", line \d|[WEIF]\d{4} \d\d:\d\d:\d\d\.\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]+:|/\S+\.py:\d+: \w*Warning: |\[\d+\]:\s{1,3}time  |  (?:time|host|rank|exitcode|error_file|traceback)\s{0,6}: |={30}|-{30}|\*{30}"
    r"|(?:srun|slurmstepd|torchrun): (?:error|usage)|During handling of|The above exception was|\[rank ?\d+\] "
    r"|Root Cause \(first|Failures:|\[\d+\]: )"
)  # fmt: skip
_EXCEPTION = r"(?:[a-zA-Z_]\w*\.){0,6}[A-Z]\w*(?:Error|Exception|Interrupt): "  # not as a part of a message
_LOST_END = lazy_regex(
    rf"(?<! )(?<!\]:) {{1,3}}?(?={_BEGINS})|(?<=\]:) (?=  time  )|(?<=[=*-]{{30}}) (?=\S)|(?<![ :]) {{1,3}}?(?={_EXCEPTION})|(?<![ :\]]) {{1,3}}?(?=(?:[Ss]tep|[Ee]poch) \d+[/ :])"
)
# Below a frame is its code, below the code its markers.
_LOST_END_IN_FRAME = lazy_regex(r"(?<=, in )(<\w+>|\w+) (?= {4}\S)|(?<=\S) (?= {6,}[~^]{2,}(?: |$))")


def _recognise_other_ends(head: Head) -> Decode | None:
    sample = head.sample
    if b"\r" not in sample and sample.isascii():
        return None
    fewest = max(_MIN_COUNT, 4 * sample.count(b"\n"))
    for mark in _ENDS:
        if sample.count(mark) >= fewest and not (mark == b"\r" and _BAR.search(sample)):
            return partial(_decode_other_ends, mark=mark)
    return None


def _decode_other_ends(content: bytes, mark: bytes) -> Decoded:
    return from_lines(
        (number, part.decode("utf-8", "replace"))
        for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), 1)
        for part in line.removesuffix(mark).split(mark)
    )


def _recognise_lost_line_feeds(head: Head) -> Decode | None:
    sample = head.sample[:_SAMPLE]
    ends = max(sample.count(b"\n"), 1)
    if len(sample) <= _MIN_JOINED_LENGTH * ends:
        return None
    found = len(_LOST_END.findall(sample.decode("utf-8", "replace")))
    return _decode_lost_line_feeds if found >= _MIN_BEGINNINGS * ends else None


def _decode_lost_line_feeds(content: bytes) -> Decoded:
    """Returns the lines of a log whose line feeds a form replaced with blanks, as far as the beginnings of lines are
    known."""
    return from_lines(_split_at_blanks(content))


def _split_at_blanks(content: bytes) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(content):
        for part in _LOST_END.split(line):
            yield from ((number, each) for each in _LOST_END_IN_FRAME.sub(r"\1\n", part).split("\n"))


OTHER_LINE_ENDS = Decoder("other line ends", _recognise_other_ends, largest=MAX_BYTES, compares_lines=True)
LOST_LINE_FEEDS = Decoder(
    "a log without line feeds", _recognise_lost_line_feeds, largest=MAX_BYTES, compares_lines=True
)
