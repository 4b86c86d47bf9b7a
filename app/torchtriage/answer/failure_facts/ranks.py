"""Who failed: the rank, its host, and the others that show the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.run_facts import exit_of
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line
from torchtriage.domain.rank_set import RankSet
from torchtriage.facts import progress

_MOST_LINES = 8  # lines of progress in which the step is looked for


def ranks(failure: Failure) -> Iterator[Fact]:
    """`rank`, `local_rank`, `host`, `time`; `ranks` and `rank_count` that show the same failure, where several do."""
    root = failure.root
    for name, value in (("rank", root.rank), ("local_rank", root.local_rank), ("host", root.host), ("time", root.time)):
        if value is not None:
            yield failure.fact(name, value)
    same = failure.finding.ranks
    if len(same) > 1:
        yield failure.fact("ranks", str(RankSet.of(same)))
        yield failure.fact("rank_count", len(same), "ranks")


def run(failure: Failure) -> Iterator[Fact]:
    """What the whole run tells: `launcher`, `world_size`, `phase`, `step`, `exit_code`, the last `checkpoint` and its
    `checkpoint_step`, and `torch_version` and its like."""
    told = failure.run
    known = (("launcher", told.launcher, None), ("world_size", told.world_size, "ranks"), ("phase", told.phase, None))
    for name, value, unit in known:
        if value is not None:
            yield Fact(name, value, unit)
    if told.step is not None:
        line = _line_of_step(failure, told.step)
        yield _at("step", told.step, line)
        bar = re.search(rf"\| ?{told.step}/([1-9]\d{{0,11}}) \[", progress.newest(line.text)) if line else None
        if line is not None and bar is not None:
            yield _at("total_steps", int(bar[1]), line)
    if told.exit_code is not None:
        ended = exit_of(failure.choice, failure.reading)
        yield _at("exit_code", told.exit_code, ended.line if ended else None, ended.rank if ended else None)
    if told.checkpoint is not None:
        saved = told.checkpoint
        for name, value in (("checkpoint", saved.path), ("checkpoint_step", saved.step)):
            if value is not None:
                yield Fact(name, value, None, saved.line, saved.file)
    for name, version in told.versions.items():
        slot = f"{name.replace('-', '_').lower()}_version"
        yield _at(slot, version, failure.reading.environment.version_at.get(name))


def _at(name: str, value: str | int, line: Line | None, rank: int | None = None) -> Fact:
    if line is None:
        return Fact(name, value)
    return Fact(name, value, None, line.number, line.file, line.rank if rank is None else rank, line.attempt or None)


def _line_of_step(failure: Failure, step: int) -> Line | None:
    """-> the line of progress that tells the last step."""
    lines = sorted(failure.reading.environment.progress_lines, key=lambda line: line.position, reverse=True)
    return next((line for line in lines[:_MOST_LINES] if progress.step(progress.newest(line.text)) == step), None)
