"""Cuts the example of a case out of a log: a run, a file and a line in; the lines that belong to it out, redacted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from torchtriage.errors import BadInput
from torchtriage.reading.blocks import blocks
from torchtriage.reading.prefixes.strip import Origin, learn_labels, strip_prefixes
from torchtriage.reading.redaction.redact import redact
from torchtriage.reading.sources import Run

BEFORE, AFTER = 400, 60  # lines that are looked at; ranks write at the same time
_MOST = 40  # lines of an example
_HEAD = 5  # of them those that a long one begins with
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_LONGEST = 2000  # characters of a line


def cut_example(run: Run, file: str | None, number: int) -> tuple[str, str]:
    """-> the text of a line without its prefix, and the lines around it that report the same: its traceback whole, and
    what is indented below it. `file` is None where the run is one file.

    Raises BadInput where the log has no such line, UnreadableLog where it can't be read.
    """
    before: deque[str] = deque(maxlen=BEFORE)
    after: list[str] = []
    sample: list[str] = []
    line = None
    for at, text in enumerate(_lines(run, file), 1):
        if len(sample) < BEFORE:
            sample.append(text)
        if at < number:
            before.append(text)
        elif at == number:
            line = text
        elif at <= number + AFTER:
            after.append(text)
        else:
            break
    if line is None:
        raise BadInput(f"{run.name} has no line {number}")
    return cut(sample, before, line, after)


def cut(sample: Iterable[str], before: Iterable[str], line: str, after: Iterable[str]) -> tuple[str, str]:
    """-> the same of lines that were read: the file's first ones, which tell how its lines are labelled, BEFORE lines
    before the one that is meant, and AFTER behind it."""
    labels = learn_labels(list(sample))
    own = strip_prefixes(line, labels)
    above = [(text, strip_prefixes(text, labels)) for text in before]
    below = [(text, strip_prefixes(text, labels)) for text in after]
    same = [[each for each in lines if _writer(each[1]) == _writer(own)] for lines in (above, below)]
    shown = [*_traceback(same[0]), line, *_indented(same[1], own.text)]
    if len(shown) > _MOST:
        shown = [*shown[:_HEAD], *shown[_HEAD - _MOST :]]
    return own.text.strip(), redact("\n".join(text.rstrip() for text in shown))


def _lines(run: Run, file: str | None) -> Iterator[str]:
    for each in run.files():
        if file is None or each.name == file:
            for block in blocks(each.chunks(), each.name):
                yield from (text[:_LONGEST] for text in block.decode("utf-8", "replace").splitlines())
            return


def _writer(origin: Origin) -> tuple[int | None, str | None, str | None]:
    return origin.rank, origin.host, origin.pod


def _traceback(above: list[tuple[str, Origin]]) -> list[str]:
    """-> the lines from the traceback on to which the line below them belongs; none where it belongs to none."""
    start = None
    for at in range(len(above) - 1, -1, -1):
        text = above[at][1].text
        if _TRACEBACK in text:
            start = at
            if not any(words in each[1].text for each in above[max(0, at - 3) : at] for words in _CHAINED):
                break
        elif start is None and not (text.startswith((" ", "\t")) or not text.strip()):
            break
    return [raw for raw, _ in above[start:]] if start is not None else []


def _indented(below: list[tuple[str, Origin]], own: str) -> list[str]:
    """-> what follows a line and belongs to it; from within a traceback, all up to its message."""
    inside = own.startswith(" ") or _TRACEBACK in own
    shown: list[str] = []
    for raw, origin in below:
        indented = origin.text.startswith((" ", "\t")) and bool(origin.text.strip())
        if not indented and not inside:
            break
        shown.append(raw)
        inside = inside and indented
    return shown
