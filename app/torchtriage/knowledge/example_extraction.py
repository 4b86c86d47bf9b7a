"""Extracts the example of a case from a log: the lines around a given line that belong to the same failure, with
secrets removed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from torchtriage.errors import BadInput
from torchtriage.reading.blocks import blocks
from torchtriage.reading.prefixes.strip import PrefixValues, learn_labels, strip_prefixes
from torchtriage.reading.redaction.redact import redact
from torchtriage.reading.sources import Run

# lines that are searched; ranks write at the same time, so the lines of one failure may be far apart
BEFORE, AFTER = 400, 60
_MAX_COUNT = 40  # lines of an example
_HEAD = 5  # first lines that are kept if the example is too long
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_MAX_LENGTH = 2000  # characters of a line


def extract_example(run: Run, file: str | None, number: int) -> tuple[str, str]:
    """Returns the text of line `number` without its prefix, and the lines that belong to it: its whole traceback and
    the indented lines below it. `file` is None if the run is one file.

    Raises BadInput if the log has no such line, and UnreadableLog.
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
    """Does the same for lines already read. `sample` are the first lines of the file, from which the labels of lines
    are learned; `before` and `after` are BEFORE and AFTER lines around `line`."""
    labels = learn_labels(list(sample))
    own = strip_prefixes(line, labels)
    above = [(text, strip_prefixes(text, labels)) for text in before]
    below = [(text, strip_prefixes(text, labels)) for text in after]
    same = [[each for each in lines if _writer(each[1]) == _writer(own)] for lines in (above, below)]
    shown = [*_traceback(same[0]), line, *_indented(same[1], own.text)]
    if len(shown) > _MAX_COUNT:
        shown = [*shown[:_HEAD], *shown[_HEAD - _MAX_COUNT :]]
    return own.text.strip(), redact("\n".join(text.rstrip() for text in shown))


def _lines(run: Run, file: str | None) -> Iterator[str]:
    for each in run.files():
        if file is None or each.name == file:
            for block in blocks(each.chunks(), each.name):
                yield from (text[:_MAX_LENGTH] for text in block.decode("utf-8", "replace").splitlines())
            return


def _writer(origin: PrefixValues) -> tuple[int | None, str | None, str | None]:
    return origin.rank, origin.host, origin.pod


def _traceback(above: list[tuple[str, PrefixValues]]) -> list[str]:
    """Returns the lines of the traceback that ends with the last of these lines. Empty if there is none."""
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


def _indented(below: list[tuple[str, PrefixValues]], own: str) -> list[str]:
    """Returns the lines below `own` that belong to it. If `own` is inside a traceback, returns all lines to its
    message."""
    inside = own.startswith(" ") or _TRACEBACK in own
    shown: list[str] = []
    for raw, origin in below:
        indented = origin.text.startswith((" ", "\t")) and bool(origin.text.strip())
        if not indented and not inside:
            break
        shown.append(raw)
        inside = inside and indented
    return shown
