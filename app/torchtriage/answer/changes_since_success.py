"""Finds what changed since the job last worked. Input: the known data of the good run and of this one. Output: the
changes that most likely matter. It reads no log, so that a page can show the result at once; `run_comparison` reads
both logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from torchtriage.answer.run_comparison import OWN_SETTINGS, ComparedRun, RunLines, compared, hosts_text
from torchtriage.domain.run_comparison import Change, ChangeKind
from torchtriage.domain.run_summary import RunSummary
from torchtriage.domain.verdict import Verdict
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.matching.masking import mask_all

MATTER, OWN_VARIABLES = "changes-that-matter", "own-variables"  # names of lists in the vocabulary
_PACKAGES, _VARIABLES = "packages", "variables"  # groups in the list of changes that matter
_SLOWER, _LONGER = 2.0, 60.0  # a phase took longer if it took this many times as long, and this many seconds more
_MAX_LENGTH = 160  # characters of a value
_OWN_VALUE = re.compile(r"<(?:time|uuid|addr|hex|url)>|\[redacted")
_TRACEBACK = "Traceback ("  # the lines from there on belong to the failure
_WORD = re.compile(r"[a-z][a-z0-9]{2,}")
_FIRST_JOB, _LATER_JOB = ("image", "commit", "gpus"), ("queue", "cluster", "scheduler", "user")


@dataclass(frozen=True, slots=True)
class KnownRun:
    """One of the two runs: what its sender said about the job, the verdict on its log, and the client's summary. Any of
    them can be missing."""

    job: dict[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    summary: RunSummary | None = None

    @property
    def hosts(self) -> frozenset[str]:
        reported = self.summary.hosts if self.summary else ()
        return frozenset((*reported, *(self.verdict.run.hosts if self.verdict else ())))


def changes_since_success(good: KnownRun, now: KnownRun, vocabulary: Vocabulary, most: int) -> tuple[Change, ...]:
    """Returns at most `most` changes from the good run to this one. The result is empty if no difference is known."""
    weigh = _weight(now.verdict, good.hosts, now.hosts, vocabulary)
    weighed = [(weigh(change), number, change) for number, change in enumerate(_changes(good, now, vocabulary))]
    return tuple(change for _, _, change in sorted(weighed, key=lambda item: item[:2])[:most])


def _changes(good: KnownRun, now: KnownRun, vocabulary: Vocabulary) -> Iterator[Change]:
    yield from _job_changes(good, now)
    yield from _version_changes(good, now)
    if added := now.hosts - good.hosts if good.hosts else frozenset():
        yield Change(ChangeKind.LAUNCH, "new_hosts", None, hosts_text(added))
    if good.verdict and now.verdict:
        before, after = (ComparedRun(RunLines(), run.verdict) for run in (good, now))
        changes = compared(before, after).changes
        yield from (one for one in changes if one.kind is not ChangeKind.VERSION and one.name != "new_hosts")
    if good.summary and now.summary:
        yield from _environment_changes(good.summary, now.summary, vocabulary)
        yield from _phase_changes(good.summary, now.summary)
        yield from _line_changes(good.summary, now.summary, now.verdict)


def _job_changes(good: KnownRun, now: KnownRun) -> Iterator[Change]:
    for name in (*_FIRST_JOB, *_LATER_JOB):
        was, is_ = good.job.get(name), now.job.get(name)
        if was and is_ and was != is_:
            yield Change(ChangeKind.JOB, name, was[:_MAX_LENGTH], is_[:_MAX_LENGTH])


def _version_changes(good: KnownRun, now: KnownRun) -> Iterator[Change]:
    """Yields versions that differ. Versions from different sources are compared without the part after `+`, which one
    source may leave out. A package is reported as new or removed only if both runs listed their packages."""
    listed_before, listed_now = (run.summary.versions if run.summary else {} for run in (good, now))
    printed_before, printed_now = (run.verdict.run.versions if run.verdict else {} for run in (good, now))
    for name in dict.fromkeys((*listed_before, *listed_now, *printed_before, *printed_now)):
        was, is_ = listed_before.get(name), listed_now.get(name)
        if listed_before and listed_now and (was or is_):
            pass
        elif name in printed_before and name in printed_now:
            was, is_ = printed_before[name], printed_now[name]
        else:
            was, is_ = was or printed_before.get(name), is_ or printed_now.get(name)
            if not was or not is_ or was.partition("+")[0] == is_.partition("+")[0]:
                continue
        if was != is_:
            yield Change(ChangeKind.VERSION, name, was, is_)


def _environment_changes(good: RunSummary, now: RunSummary, vocabulary: Vocabulary) -> Iterator[Change]:
    if not good.environment or not now.environment:  # nobody sent it
        return
    own_ends = frozenset(vocabulary.words(OWN_SETTINGS))
    own_starts = tuple(vocabulary.words(OWN_VARIABLES))
    for name in sorted({*good.environment, *now.environment}):
        was, is_ = good.environment.get(name), now.environment.get(name)
        ends = re.split(r"[_.-]", name.lower())[-1]
        if was == is_ or ends in own_ends or name.startswith(own_starts):
            continue
        if not any(value and _OWN_VALUE.search(mask_all(value)) for value in (was, is_)):
            yield Change(ChangeKind.ENVIRONMENT, name, _cut(was), _cut(is_))


def _phase_changes(good: RunSummary, now: RunSummary) -> Iterator[Change]:
    for name, seconds in now.phases.items():
        was = good.phases.get(name)
        if was is not None and seconds > _SLOWER * was and seconds - was > _LONGER:
            yield Change(ChangeKind.TIMING, name, f"{was:.0f}", f"{seconds:.0f}")


def _line_changes(good: RunSummary, now: RunSummary, verdict: Verdict | None) -> Iterator[Change]:
    """Yields the last new line above the failure, if the failure is among the lines. The lines below it belong to the
    failure."""
    evidence = verdict.root_cause.evidence if verdict and verdict.root_cause else ()
    failed = next(
        (at for at, line in enumerate(now.lines) if any(_same_form(line, one.text) for one in evidence)), None
    )
    if failed is None or not good.lines:
        return
    known = frozenset(good.lines)
    new = [line for line in now.lines[:failed] if line not in known]
    own = next((at for at, line in enumerate(new) if _TRACEBACK in line), len(new))
    if new := new[:own]:
        yield Change(ChangeKind.LINE, "new_line", None, new[-1][:_MAX_LENGTH])


def _same_form(masked: str, line: str) -> bool:
    """Returns whether a line has this masked form. A mask stands for any text."""
    words = [word for word in re.split(r"[#*\s]+", masked) if len(word) > 2]
    return bool(words) and all(word in line for word in words)


def _cut(value: str | None) -> str | None:
    return None if value is None else value[:_MAX_LENGTH]


def _weight(
    verdict: Verdict | None, before: frozenset[str], now: frozenset[str], vocabulary: Vocabulary
) -> Callable[[Change], int]:
    """Returns a function that ranks changes by how likely they matter, 0 first: what the verdict names; packages and
    images; variables of libraries; hosts, commit and size; everything else."""
    groups = vocabulary.groups(MATTER)
    packages = {name: at for at, name in enumerate(groups[_PACKAGES])}
    variables = tuple(groups[_VARIABLES])
    root = verdict.root_cause if verdict else None
    blamed = {root.host} if root and root.host else set()
    named = frozenset(_WORD.findall(root.entry.lower())) if root and root.entry else frozenset()

    def weigh(change: Change) -> int:
        names = frozenset(_WORD.findall(change.name.lower()))
        if change.name == "new_hosts":
            return 0 if blamed & (now - before) else 300 if before & now else 500
        if change.kind in (ChangeKind.VERSION, ChangeKind.ENVIRONMENT) and names & named:
            return 1
        if change.kind is ChangeKind.VERSION:
            return 100 + packages[change.name] if change.name in packages else 450
        if change.kind is ChangeKind.ENVIRONMENT:
            return 200 if change.name.startswith(variables) else 460
        if change.kind is ChangeKind.JOB:
            return {"image": 199, "commit": 310, "gpus": 320}.get(change.name, 600)
        return {ChangeKind.LAUNCH: 330, ChangeKind.TIMING: 400, ChangeKind.LINE: 420}.get(change.kind, 500)

    return weigh
