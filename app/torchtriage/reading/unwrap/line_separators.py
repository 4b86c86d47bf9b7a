"""Files whose lines are parted by something other than line feeds: a Mac's or Unicode's line ends, tags of a page, the
soft ends of a mail's encoding, or by nothing but a blank.

The first bytes of a file in, what parts its lines out; then its content in, its lines out.
"""

from __future__ import annotations

import html
import quopri
import re
from collections.abc import Callable, Iterator

from torchtriage.reading.unwrap.interleaved_lines import stand_between, without
from torchtriage.reading.unwrap.numbered_lines import numbered

_FEWEST = 4  # line ends
_LONG = 400  # bytes of a line into which several were joined
_SOME = 8 << 10  # bytes by which such files are told
_MARKS = 5  # beginnings of lines in one that was joined, at least
_ENDS = (b"\r", "\u2028".encode(), "\x85".encode())
# Progress that returns to the line's start and writes over it.
_BAR = re.compile(rb"%\||\d(?:it/s|s/it)[,\]]|\d \[=*>?\.*\] - ")
_SOFT = re.compile(rb"\n[^\n]{60,75}(?<!=)=(?=\r?\n)")
_SPELLED = re.compile(rb"=(?:3D|20|22|27|09)")
_PAGE = re.compile(
    rb"\s*(?:<\?xml[^<]*)?<(?:!DOCTYPE|html|head|body|table|pre|div|p|ul|ol|span|tr|testsuites?)\b", re.I
)
_ROW_ENDS = re.compile(r"<br ?/?>|</(?:p|div|tr|li|h\d)>|<!\[CDATA\[|\]\]>", re.I)
_CELL_ENDS = re.compile(r"</t[dh]>\s*(?=<t[dh]\b)", re.I)
_TAG = re.compile(
    r"<(?:[A-Za-z][\w:-]*(?:\s[^<>]{0,500})?/?|/[A-Za-z][\w:-]*\s*|!--.{0,500}?--|![A-Z][^<>]{0,200}|\?xml[^<>]{0,200})>",
    re.S,
)
# What lines begin with and nothing inside of a line does.
_BEGINS = (
    r"(?:\[(?:rank|default)\d{1,6}\]:|Traceback \(most recent|(?: {2})?File \"[^\"]+\", line \d|[WEIF]\d{4} \d\d:\d\d:\d\d\.\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]+:|/\S+\.py:\d+: \w*Warning: |\[\d+\]:\s{1,3}time  |  (?:time|host|rank|exitcode|error_file|traceback)\s{0,6}: |={30}|-{30}|\*{30}"
    r"|(?:srun|slurmstepd|torchrun): (?:error|usage)|During handling of|The above exception was|\[rank ?\d+\] "
    r"|Root Cause \(first|Failures:|\[\d+\]: )"
)  # fmt: skip
_THROWN = r"(?:[a-zA-Z_]\w*\.){0,6}[A-Z]\w*(?:Error|Exception|Interrupt): "  # not as a part of a message
_BLANK = re.compile(
    rf"(?<! )(?<!\]:) {{1,3}}?(?={_BEGINS})|(?<=\]:) (?=  time  )|(?<=[=*-]{{30}}) (?=\S)|(?<![ :]) {{1,3}}?(?={_THROWN})|(?<![ :\]]) {{1,3}}?(?=(?:[Ss]tep|[Ee]poch) \d+[/ :])"
)
# Below a frame stands its code, below that marks.
_BELOW = re.compile(r"(?<=, in )(<\w+>|\w+) (?= {4}\S)|(?<=\S) (?= {6,}[~^]{2,}(?: |$))")


def parting(sample: bytes) -> Callable[[bytes], Iterator[tuple[int, str]]] | None:
    """-> what takes the lines out of the content of a file that begins with `sample`; None where line feeds part them."""
    ends = sample.count(b"\n")
    if b"\r" in sample or not sample.isascii():
        for mark in _ENDS:
            if sample.count(mark) >= max(_FEWEST, 4 * ends) and not (mark == b"\r" and _BAR.search(sample)):
                return _by(mark)
    if sample[:1] in (b"<", b"\n", b" ", b"\r") and _PAGE.match(sample):
        return in_page
    some = sample[:_SOME]
    if is_mail(sample):
        return in_mail
    ends = max(some.count(b"\n"), 1)
    if len(some) > _LONG * ends and len(_BLANK.findall(some.decode("utf-8", "replace"))) >= _MARKS * ends:
        return by_blanks
    return without if stand_between(sample) else None


def is_mail(sample: bytes) -> bool:
    """-> whether a file that begins with `sample` is a mail in quoted-printable."""
    some = sample[:_SOME]
    if b"=3D" not in some and b"=20" not in some and b"=\r\n" not in some:
        return False
    return len(_SOFT.findall(sample)) >= _FEWEST and _SPELLED.search(sample) is not None


def _by(mark: bytes) -> Callable[[bytes], Iterator[tuple[int, str]]]:
    def told(content: bytes) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
            for part in line.removesuffix(mark).split(mark):
                yield number, part.decode("utf-8", "replace")

    return told


def in_page(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) for each line of a page as a browser shows it."""
    for number, line in numbered(content):
        rows = _ROW_ENDS.split(line)
        for row in rows if rows[-1].strip() else rows[:-1] or rows:
            yield number, html.unescape(_TAG.sub("", _CELL_ENDS.sub(" ", row))).replace("\u00a0", " ")


def in_mail(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) for each line of a mail in quoted-printable."""
    number, first, waiting = 1, 1, b""
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        first = first if waiting else number
        waiting += line[:-1] if line.endswith(b"=") else line
        if not line.endswith(b"="):
            yield first, quopri.decodestring(waiting).decode("utf-8", "replace")
            waiting = b""
    if waiting:
        yield number, quopri.decodestring(waiting).decode("utf-8", "replace")


def by_blanks(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) for each line of a log whose line feeds a form turned into blanks, as far as their
    beginnings are known."""
    for number, line in numbered(content):
        for part in _BLANK.split(line):
            yield from ((number, each) for each in _BELOW.sub(r"\1\n", part).split("\n"))
