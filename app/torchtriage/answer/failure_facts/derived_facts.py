"""Computes facts from other facts, such as the steps and the time that were left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.event import EventSource
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.times import seconds_between

_OF = lazy_regex(r"(\d{1,12}) ?/ {0,8}([1-9]\d{0,11})")
_FIRST = 30  # lines that are searched for the start time
_CLOCK = lazy_regex(r"(?:(\d+):)?(\d{1,2}):(\d\d)")
_MARGIN = 1.15  # factor on a time limit, for startup, saving and slower steps
_MIN_BATCH = 2  # samples: the smallest batch that can be halved
_MIN_SECONDS, _MAX_SECONDS = 120, 90 * 86400


def derived_facts(failure: Failure, known: Mapping[str, Fact]) -> Iterator[Fact]:
    """Yields facts computed from `known`.

    `step` and `total_steps` come from the progress bar of training, and `epoch_of_step` from the second epoch on.
    `run_time` is the time of the loop, or else the time from the first line to the failure (`2 h 55 min`). `steps_left`
    and `time_left` (steps left × seconds per step) are given, or `all_steps_done`, the number of steps. `whole_time` is
    the sum of both times, and `time_to_ask` adds a margin, in Slurm's format. `half_batch_size` and
    `double_accumulation` together keep the batch size of a step.
    """
    step, total = _steps_of_bar(failure, known)
    if step is not None and total is not None and "step" not in known:
        yield step
    total = known.get("total_steps") or total
    if total is not None and "total_steps" not in known:
        yield total
    at = known.get("step") or step
    epoch = known.get("epoch")
    if at is not None and epoch is not None and (epoch.line, epoch.file) == (at.line, at.file) and _number(epoch) > 1:
        yield Fact("epoch_of_step", epoch.value, None, at.line, at.file)
    seconds = _elapsed(known, at) or (
        seconds_between(_start_time(failure), failure.root.time) if failure.root.time else None
    )
    if seconds is not None and _MIN_SECONDS < seconds < _MAX_SECONDS:
        yield Fact("run_time", duration_text(seconds))
    yield from _total_time(known)
    yield from _half_batch(known)
    if at is None or total is None:
        return
    left = _number(total) - _number(at)
    if left == 0 < _number(total) and _in_last_epoch(known):
        yield Fact("all_steps_done", _number(total), None, at.line, at.file)
    if left > 0:
        yield Fact("steps_left", left, "steps", at.line, at.file)
        each = known.get("seconds_per_step")
        if each is not None and each.line == at.line and (one := _seconds(each)):
            yield Fact("time_left", duration_text(left * one), None, each.line, each.file)
            if seconds is not None and seconds > _MIN_SECONDS:
                yield from _time_to_request(seconds + left * one, each)


def _in_last_epoch(known: Mapping[str, Fact]) -> bool:
    """Returns whether the end of a loop over steps can be the end of training. A loop over one epoch ends once per
    epoch."""
    epoch, total = known.get("epoch"), known.get("total_epochs")
    return epoch is None or (total is not None and _number(epoch) >= _number(total))


def _total_time(known: Mapping[str, Fact]) -> Iterator[Fact]:
    """Yields `whole_time` and `time_to_ask` of a progress bar that shows the time used and the time left."""
    elapsed, left = known.get("loop_elapsed"), known.get("remaining")
    if elapsed is None or left is None or elapsed.line != left.line:
        return
    ran, rest = _clock(elapsed), _clock(left)
    if ran and rest and ran > _MIN_SECONDS:
        yield from _time_to_request(ran + rest, left)


def _half_batch(known: Mapping[str, Fact]) -> Iterator[Fact]:
    batch = known.get("batch_size")
    if batch is None or _number(batch) < _MIN_BATCH:
        return
    yield Fact("half_batch_size", _number(batch) // 2, None, batch.line, batch.file)
    steps = known.get("gradient_accumulation")
    yield Fact("double_accumulation", 2 * (_number(steps) if steps else 1), None, batch.line, batch.file)


def _time_to_request(whole: float, source: Fact) -> Iterator[Fact]:
    """Yields how long the run takes and the time limit to request, with the line that shows the speed."""
    yield Fact("whole_time", duration_text(whole), None, source.line, source.file)
    yield Fact("time_to_ask", f"{math.ceil(whole * _MARGIN / 3600)}:00:00", None, source.line, source.file)


def _elapsed(known: Mapping[str, Fact], at: Fact | None) -> float | None:
    """Returns the elapsed seconds of the training progress bar that shows the step."""
    elapsed, bar = known.get("loop_elapsed"), known.get("progress")
    if elapsed is None or at is None or bar is None or bar.line != elapsed.line:
        return None
    return _clock(elapsed) if str(bar.value).startswith(f"{_number(at)}/") else None


def _clock(fact: Fact | None) -> float | None:
    """Returns the seconds of a time such as `1:55:26`."""
    found = _CLOCK.fullmatch(str(fact.value)) if fact else None
    return int(found[1] or 0) * 3600 + int(found[2]) * 60 + int(found[3]) if found else None


def _start_time(failure: Failure) -> str | None:
    """Returns the time of the first line that has one. A line in the failure's own file is preferred."""
    reading = failure.reading
    if failure.finding.event.source is EventSource.HANG:
        return None  # The run continued without doing anything.
    timed = [line for line in reading.opening[:_FIRST] if line.time is not None]
    same = (line.time for line in timed if line.position.file == failure.finding.position.file)
    return reading.facts.span.dated(next(same, timed[0].time if timed else None))


def _steps_of_bar(failure: Failure, known: Mapping[str, Fact]) -> tuple[Fact | None, Fact | None]:
    """Returns the step and the total number of steps if the newest progress bar is the one of training: it has no name,
    and its count equals the step if that is known."""
    bar = known.get("progress")
    found = _OF.fullmatch(str(bar.value)) if bar else None
    named = known.get("progress_of")
    step = known.get("step")
    if bar is None or found is None or (step is not None and _number(step) != int(found[1])):
        return None, None
    of_another = named is not None and named.line == bar.line
    if step is None and (of_another or failure.run.phase != "train"):
        return None, None
    return (
        Fact("step", int(found[1]), None, bar.line, bar.file, bar.rank, bar.attempt),
        Fact("total_steps", int(found[2]), None, bar.line, bar.file, bar.rank, bar.attempt),
    )


def duration_text(seconds: float) -> str:
    """Returns a duration in words: `26 min`, `2 h 55 min`, `3 d 4 h` or `12 s`."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"


def _number(fact: Fact) -> int:
    text = str(fact.value).replace(",", "")
    return int(text) if text.isdecimal() else 0


def _seconds(fact: Fact) -> float | None:
    try:
        return float(fact.value) if fact.unit == "s" else None
    except ValueError:
        return None
