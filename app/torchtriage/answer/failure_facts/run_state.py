"""The state of the run at the failure: launcher, size, phase, step, exit status, attempts, last checkpoint and kind of
job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from signal import Signals

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.verdict_run import exit_of
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line
from torchtriage.facts import progress
from torchtriage.reading.prefixes.times import seconds_between

JOB_KINDS = "job-kinds"  # the vocabulary's list: words in scripts and functions, by kind of job
_SIGNALS = {int(one): one.name for one in Signals}
_SHORT = 4  # letters: a word of at most this length counts only as a whole word
_MAX_LINES = 8  # lines of progress that are searched for the step


def run_state(failure: Failure) -> Iterator[Fact]:
    """Yields `launcher`, `world_size`, `phase`, `step`, `exit_code`, the last `checkpoint` and its `checkpoint_step`,
    `torch_version` and similar facts. `signal` is the signal that the exit status reports. Others are `attempt_count`,
    `attempt`, `host_count`, `seconds_after_failure`, `checkpoint_time`, `checkpoint_age`, `steps_since_checkpoint` and
    `job_kind`."""
    yield from _facts_of_run(failure)
    if (signal := _signal(failure.run.exit_code)) is not None:
        ended = exit_of(failure.choice, failure.reading)
        yield failure.fact("signal", signal, line=ended.line if ended else None)
    yield from _attempts(failure)
    yield from _since_checkpoint(failure)
    if (kind := _job_kind(failure)) is not None:
        yield Fact("job_kind", kind)


def _facts_of_run(failure: Failure) -> Iterator[Fact]:
    run = failure.run
    known = (("launcher", run.launcher, None), ("world_size", run.world_size, "ranks"), ("phase", run.phase, None))
    for name, value, unit in known:
        if value is not None:
            yield Fact(name, value, unit)
    if run.step is not None:
        line = _line_of_step(failure, run.step)
        yield _fact_at("step", run.step, line)
        bar = re.search(rf"\| ?{run.step}/([1-9]\d{{0,11}}) \[", progress.newest(line.text)) if line else None
        if line is not None and bar is not None:
            yield _fact_at("total_steps", int(bar[1]), line)
    if run.exit_code is not None:
        ended = exit_of(failure.choice, failure.reading)
        yield _fact_at("exit_code", run.exit_code, ended.line if ended else None, ended.rank if ended else None)
    if run.checkpoint is not None:
        saved = run.checkpoint
        for name, value in (("checkpoint", saved.path), ("checkpoint_step", saved.step)):
            if value is not None:
                yield Fact(name, value, None, saved.line, saved.file)
    for name, version in run.versions.items():
        slot = f"{name.replace('-', '_').lower()}_version"
        yield _fact_at(slot, version, failure.reading.facts.version_at.get(name))


def _signal(exit_code: int | None) -> str | None:
    """Returns the signal that an exit status of Python or a shell reports."""
    if exit_code is None:
        return None
    return _SIGNALS.get(-exit_code if exit_code < 0 else exit_code - 128)


def _attempts(failure: Failure) -> Iterator[Fact]:
    run, root = failure.run, failure.root
    if run.attempts > 1:
        yield Fact("attempt_count", run.attempts)
        yield failure.fact("attempt", root.attempt)
    if len(run.hosts) > 1:
        yield Fact("host_count", len(run.hosts), "hosts")
    if run.seconds_after_failure:
        yield Fact("seconds_after_failure", run.seconds_after_failure, "s")


def _since_checkpoint(failure: Failure) -> Iterator[Fact]:
    run = failure.run
    saved = run.checkpoint
    if saved is None:
        return
    if saved.time is not None:
        yield Fact("checkpoint_time", saved.time, None, saved.line, saved.file)
        age = seconds_between(saved.time, failure.root.time)
        if age is not None and age >= 0:
            yield Fact("checkpoint_age", round(age), "s", saved.line, saved.file)
    if run.step is not None and saved.step is not None and run.step >= saved.step:
        yield Fact("steps_since_checkpoint", run.step - saved.step, "steps", saved.line, saved.file)


def _job_kind(failure: Failure) -> str | None:
    """Returns what the job does. The words in its outermost script and functions decide first, then what the log
    shows."""
    words = failure.reading.matcher.patterns.vocabulary.groups(JOB_KINDS)
    raised = failure.raised
    own = [frame for frame in (raised.frames if raised else ()) if failure.is_user_frame(frame)]
    for text in (text for frame in own[:3] for text in (re.split(r"[/\\]", frame.file)[-1], frame.function)):
        found = _words(tuple(words.items())).search(text.lower())
        if found is not None and found.lastgroup is not None:
            return list(words)[int(found.lastgroup[1:])]
    if failure.reading.facts.servers_up:
        return "inference"
    if failure.run.phase == "evaluate":
        return "evaluation"
    trains = failure.reading.facts.progress or failure.run.phase in ("train", "save")
    return "training" if trains else None


@lru_cache(maxsize=8)
def _words(kinds: tuple[tuple[str, tuple[str, ...]], ...]) -> re.Pattern[str]:
    """Returns a regex whose groups `k0`, `k1` … are the kinds. A long word also matches as the beginning of a longer
    one."""
    ends = [[re.escape(word) + ("" if len(word) > _SHORT else r"(?![a-z])") for word in words] for _, words in kinds]
    groups = (f"(?P<k{at}>{'|'.join(words)})" for at, words in enumerate(ends))
    return re.compile(rf"(?<![a-z])(?:{'|'.join(groups)})")


def _fact_at(name: str, value: str | int, line: Line | None, rank: int | None = None) -> Fact:
    if line is None:
        return Fact(name, value)
    return Fact(name, value, None, line.number, line.file, line.rank if rank is None else rank, line.attempt or None)


def _line_of_step(failure: Failure, step: int) -> Line | None:
    """Returns the line of progress that shows the last step."""
    lines = sorted(failure.reading.facts.progress_lines, key=lambda line: line.position, reverse=True)
    return next((line for line in lines[:_MAX_LINES] if progress.step(progress.newest(line.text)) == step), None)
