"""The exception's type and message."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from torchtriage.answer.failure_facts.failure import Failure, is_users
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex

_SHAPE = lazy_regex(r"\[(\d{1,12}(?:, ?\d{1,12}){0,7})\]")
_SHAPES_WITHIN = 2000  # characters of a message
_WORKER = lazy_regex(r"Caught \w{1,80} in DataLoader worker process (\d{1,4})")


def exception_message(failure: Failure) -> Iterator[Fact]:
    """`exception` (the type without its module), `message` (its first line that says something), `reported_as` (what
    the user's code raised of it, which often names the file or the sample) and `worker` (the DataLoader's process that
    raised it). `same_elements`: how many both of two shapes in the message hold."""
    raised = failure.raised
    if raised is None:
        return
    if raised.type:
        yield failure.fact("exception", raised.type.rpartition(".")[2])
    first = next((line.strip().lstrip(": ") for line in raised.message.split("\n") if line.strip()), None)
    if first:
        yield failure.fact("message", first)
    if (elements := _same_elements(raised.message)) is not None:
        yield failure.fact("same_elements", elements)
    last = failure.finding.event.chain[-1] if failure.finding.event.chain else raised
    own = last is not raised and bool(last.frames) and is_users(last.frames[-1])
    if own and last.message.strip() and last.message.strip() not in raised.message:
        yield failure.fact("reported_as", last.text.split("\n", 1)[0], line=last.lines[0] if last.lines else None)
    told = (_WORKER.search(one.message) for one in failure.finding.event.chain)
    if worker := next((found[1] for found in told if found), None):
        yield failure.fact("worker", worker)


def _same_elements(text: str) -> int | None:
    """-> the number of elements of the two different shapes that a message names, where it is one number."""
    shapes = dict.fromkeys(tuple(map(int, found.split(","))) for found in _SHAPE.findall(text[:_SHAPES_WITHIN]))
    counts = {prod(shape) for shape in shapes}
    return counts.pop() if len(shapes) == 2 and len(counts) == 1 else None
