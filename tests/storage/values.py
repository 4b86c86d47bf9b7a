"""Values of the domain for tests of the storage."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from torchtriage.domain.incident import Job, StoredFile, StoredLog, VerdictSummary
from torchtriage.domain.verdict import Action, RunFacts, Stats, Verdict
from torchtriage.storage import new_incidents, verdicts

START = datetime(2026, 5, 1, 9, 5, 11, 123456, tzinfo=UTC)


def stored(content: str = "a log", *more: str) -> StoredLog:
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (content, *more)]
    files = tuple(StoredFile(f"rank{i}.log", digest, 10, 2) for i, digest in enumerate(digests))
    return StoredLog("-".join(digests), files)


def summary(fingerprint: str | None = "v1:aa", **other: Any) -> VerdictSummary:
    known: dict[str, Any] = {
        "outcome": "explained",
        "signature": "torch.OutOfMemoryError in forward",
        "entry": "cuda.oom",
        "title": "The GPU ran out of memory",
        "host": "gpu-021",
        "text": "torch.OutOfMemoryError: CUDA out of memory\nGPU 显存不足",
    }
    return VerdictSummary(fingerprint=fingerprint, **(known | other))


def verdict(outcome: str = "explained", advice: str = "none", knowledge: str = "sha256:old") -> Verdict:
    """Returns a verdict that says no more than its outcome, and holds what not every database takes."""
    return Verdict(
        source="run.log",
        outcome=outcome,
        signature=None,
        fingerprint=None,
        root_cause=None,
        candidates=(),
        cascades=(),
        action=Action("no", advice, (), ""),
        run=RunFacts(),
        attempts=(),
        earlier_runs=(),
        warnings=("nul \0 and half a pair \ud800",),
        stats=Stats(),
        engine="1",
        knowledge=knowledge,
    )


def added(session: Session, content: str = "a log", at: int = 0, **job: Any) -> str:
    """Returns the id of a new incident, received `at` seconds after START."""
    return add(session, Job(**job), stored(content), START + timedelta(seconds=at))[0]


def add(session: Session, job: Job, log: StoredLog, at: datetime = START) -> tuple[str, bool]:
    """Returns the id of an incident, and whether it is new."""
    return new_incidents.add(session, [new_incidents.Received(job, log, at)])[0]


def triaged(
    session: Session, content: str = "a log", at: int = 0, found: VerdictSummary | None = None, **job: Any
) -> str:
    incident = added(session, content, at, **job)
    assert save(session, incident, verdict(), found or summary())
    return incident


def save(session: Session, incident: str, verdict: Verdict, found: VerdictSummary, settled: bool = True) -> bool:
    """Returns whether a verdict of START was kept."""
    return verdicts.save(session, [verdicts.NewVerdict(incident, verdict, found)], START, settled) == [True]
