"""Lines that others put between those of a log: names and times of a chat, a supervisor's headers, a terminal's bars.

The first bytes of a file in, whether it has such lines; its content in, the other lines out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.reading.unwrap.numbered_lines import numbered

_FEWEST = 2
_SAMPLE = 16 << 10  # bytes in which the first of them stands
_FIRST = 400  # bytes in which a chat's first line ends
# Of lines that do not begin a file each holds one of these literals; most files hold none.
_HINTS = (b"M\n", b"--More--", b" output:\n")
_DATE = r"(?:\d{4}[/.-]\d{1,2}[/.-]\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4})"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?"
_BETWEEN = re.compile(
    rf"[^\W\d_][^\W\d_]*(?:[ .'-][^\W\d_]+){{0,4}} {{1,3}}{_CLOCK}"  # Slack
    rf"|[^\W\d_]\S{{0,20}}(?: \S{{1,20}})? (?:{_DATE} {_CLOCK}|[—–-] (?:Today|Yesterday) at {_CLOCK})"  # WeChat, Discord
    rf"|\[{_DATE},? {_CLOCK}\] [^\W\d_][^:=\[\]]{{0,40}}:?"  # Teams, WhatsApp
    rf"|[^\W\d_][\w ]{{0,40}}, \[{_DATE},? {_CLOCK}\]"  # Telegram
    r"|--More--(?:\(\d+%\))?|\(END\)"
    r"|\[\d+\] (?:\d+:\S+[*-]?\s+){1,9}\"[^\"]{1,80}\" \d\d:\d\d \S+"  # tmux
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ DEBG '[^']{1,80}' std(?:out|err) output:"  # supervisord
)


def stand_between(sample: bytes) -> bool:
    """-> whether such lines stand between those of a file that begins with `sample`."""
    some = sample[:_SAMPLE]
    first = sample[:_FIRST].decode("utf-8", "replace").partition("\n")[0]
    if not any(hint in some for hint in _HINTS) and not _BETWEEN.fullmatch(first.rstrip("\r ")):
        return False
    lines = sample.decode("utf-8", "replace").split("\n")
    return sum(_BETWEEN.fullmatch(line.rstrip("\r ")) is not None for line in lines) >= _FEWEST


def without(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields (line number, line) for each line of a file that is its log's own."""
    empty = False
    for number, line in numbered(content):
        if _BETWEEN.fullmatch(line.rstrip(" ")):
            empty = True
        elif line.strip() or not empty:
            yield number, line
            empty = False
