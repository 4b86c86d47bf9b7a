"""What a decision needs to know of an attempt: a verdict in, the few facts that the rules ask for out."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.domain.decision import AttemptRecord
from torchtriage.domain.host import host_name
from torchtriage.domain.verdict import FAILED, Evidence, Verdict

_MOST_EVIDENCE = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that may have failed. `failed` is whether it is known that it did; `retry` and `advice` are the
    verdict's action; `hosts` those that it says to leave out; `checkpoint` the newest that was written before.
    `several_hosts`: the run was on more than one, so that the one that failed first says something."""

    record: AttemptRecord
    failed: bool
    confidence: str | None = None
    retry: str = "no"
    advice: str = "none"
    hosts: tuple[str, ...] = ()
    checkpoint: str | None = None
    several_hosts: bool = False
    evidence: tuple[Evidence, ...] = ()

    @property
    def explained(self) -> bool:
        return self.record.entry is not None

    @property
    def certain(self) -> bool:
        return self.explained and self.confidence == "certain"


def failure_of(verdict: Verdict | None, attempt: int, failed: bool = False) -> Failure:
    """-> what is known of an attempt; `failed`: whoever sent its log knows that it did. Without a verdict nothing is
    known but that the attempt failed."""
    if verdict is None:
        return Failure(AttemptRecord(attempt), failed=True)
    root, saved = verdict.root_cause, verdict.run.checkpoint
    return Failure(
        record_of(verdict, attempt),
        failed=failed or verdict.outcome in FAILED,
        confidence=root.confidence if root and root.entry else None,
        retry=verdict.action.retry,
        advice=verdict.action.advice,
        hosts=tuple(filter(host_name, verdict.action.exclude_hosts)),
        checkpoint=saved.path if saved else None,
        several_hosts=len(verdict.run.hosts) > 1,
        evidence=root.evidence[:_MOST_EVIDENCE] if root else (),
    )


def record_of(verdict: Verdict, attempt: int) -> AttemptRecord:
    """-> what is kept of an attempt for later decisions."""
    root = verdict.root_cause
    return AttemptRecord(
        attempt,
        verdict.outcome,
        root.entry if root else None,
        verdict.fingerprint,
        verdict.run.step,
        host_name(root.host) if root else None,
        root.rank if root else None,
    )
