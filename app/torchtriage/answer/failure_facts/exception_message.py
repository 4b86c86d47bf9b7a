"""The exception's type and message."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.templates import MAX_VALUE_LENGTH
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex

_SHAPE = lazy_regex(r"\[(\d{1,12}(?:, ?\d{1,12}){0,7})\]")
_SHAPES_WITHIN = 2000  # characters of a message that are searched for shapes
_MAX_LINES = 6
_WORKER = lazy_regex(r"Caught \w{1,80} in DataLoader worker process (\d{1,4})")


def exception_message(failure: Failure) -> Iterator[Fact]:
    """Yields `exception` (the type without its module), `message` (its first informative line and the lines it
    introduces), `reported_as` (the exception that the user's code raised from it, which often names the file or the
    sample) and `worker` (the DataLoader process that raised it). `same_elements` is the number of elements if the two
    shapes in the message have the same number."""
    raised = failure.raised
    if raised is None:
        return
    if raised.type:
        yield failure.fact("exception", raised.type.rpartition(".")[2])
    message_lines = [line.strip().lstrip(": ") for line in raised.message.split("\n", _MAX_LINES) if line.strip()]
    if message_lines:
        first = _first_informative(message_lines)
        yield failure.fact("message", first)
    if (elements := _same_elements(raised.message)) is not None:
        yield failure.fact("same_elements", elements)
    last = failure.finding.event.chain[-1] if failure.finding.event.chain else raised
    own = last is not raised and bool(last.frames) and failure.is_user_frame(last.frames[-1])
    if own and last.message.strip() and last.message.strip() not in raised.message:
        yield failure.fact("reported_as", last.text.split("\n", 1)[0], line=last.lines[0] if last.lines else None)
    workers = (_WORKER.search(one.message) for one in failure.finding.event.chain)
    if worker := next((found[1] for found in workers if found), None):
        yield failure.fact("worker", worker)


def _first_informative(lines: list[str]) -> str:
    """Returns the first informative line. If it ends in a colon, the lines below it are added."""
    last = next((place for place, line in enumerate(lines) if not line.endswith(":")), 0)
    joined = " ".join(lines[: last + 1])
    return joined if len(joined) <= MAX_VALUE_LENGTH else lines[0]


def _same_elements(text: str) -> int | None:
    """Returns the number of elements of two different shapes in a message, if it is the same for both; else None."""
    shapes = dict.fromkeys(tuple(map(int, found.split(","))) for found in _SHAPE.findall(text[:_SHAPES_WITHIN]))
    counts = {prod(shape) for shape in shapes}
    return counts.pop() if len(shapes) == 2 and len(counts) == 1 else None
