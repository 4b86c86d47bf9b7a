"""Finds which findings another finding explains, by the entries' `explains` and the order in the log."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from torchtriage.domain.entry import Role
from torchtriage.domain.event import EventSource, Where
from torchtriage.runs.findings import Finding


def causes(findings: Iterable[Finding]) -> dict[int, list[Finding]]:
    """Returns, for each attempt, the earliest finding of each entry that can explain others."""
    earliest: dict[tuple[int, str, int | None], Finding] = {}
    for finding in findings:
        match = finding.match
        if (
            match is not None
            and not (match.weak or match.broad)
            and (match.entry.explains or _is_cpp_exception(finding))
        ):
            key = (
                finding.attempt,
                match.entry.id,
                min(finding.ranks, default=-1) if _is_cpp_exception(finding) else None,
            )
            known = earliest.setdefault(key, finding)
            if finding.position < known.position:
                earliest[key] = finding
    found: dict[int, list[Finding]] = {}
    for (attempt, *_), finding in earliest.items():
        found.setdefault(attempt, []).append(finding)
    return found


def explained_by(effect: Finding, known: dict[int, list[Finding]]) -> Finding | None:
    """Returns the finding of the same attempt whose entry explains this one, or None. If two findings explain each
    other, the earlier one explains the later one. `known` comes from `causes`."""
    return next((cause for cause in known.get(effect.attempt, ()) if explains(cause, effect)), None)


def unexplained(findings: list[Finding]) -> list[Finding]:
    """Returns the findings that no other finding explains."""
    known = causes(findings)
    return [finding for finding in findings if explained_by(finding, known) is None]


def explains(first: Finding, second: Finding) -> bool:
    """Returns whether the first finding's entry explains the second finding, and their order allows it."""
    cause, effect = first.match, second.match
    if cause is None or effect is None or cause.entry.id == effect.entry.id:
        return False
    if _is_cpp_exception(first) and second.has_role(Role.ABORT) and _of_one_process(first, second):
        return True
    if not _named(cause.entry.explains, effect.entry.id) or _ended_its_step(first, second):
        return False
    return (
        first.position <= second.position
        or effect.weak
        or effect.broad
        or not _named(effect.entry.explains, cause.entry.id)
    )


def _ended_its_step(cancelled: Finding, task: Finding) -> bool:
    """Returns whether srun reported the end of a task first. Then it cancelled the step because of this task, not the
    other way round."""
    both = cancelled.event.source is EventSource.SLURM and task.event.source is EventSource.SLURM
    return both and task.position < cancelled.position


def _is_cpp_exception(finding: Finding) -> bool:
    """Returns whether this is an uncaught C++ exception, after which the runtime aborts the process."""
    return finding.event.source is EventSource.PROCESS_EXIT and finding.event.where is Where.LINE


def _of_one_process(thrown: Finding, abort: Finding) -> bool:
    """Returns whether the same process may have raised the exception and aborted."""
    return not (thrown.ranks and abort.ranks) or not thrown.ranks.isdisjoint(abort.ranks)


@lru_cache(maxsize=65536)
def _named(patterns: tuple[str, ...], entry: str) -> bool:
    return any(fnmatchcase(entry, pattern) for pattern in patterns)
