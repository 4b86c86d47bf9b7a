"""What a decision needs to know about an attempt, taken from its verdict."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.domain.decision import AttemptRecord
from torchtriage.domain.host import host_name
from torchtriage.domain.verdict import FAILED, Evidence, Verdict

_MAX_EVIDENCE = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that may have failed.

    `failed` says whether the failure is known. `retry` and `advice` are the verdict's action; `hosts` are the hosts
    that it says to leave out. `checkpoint` is the newest one written before the failure. `several_hosts` says that the
    run used more than one host, so that it matters which one failed first.
    """

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
    """Returns what is known about an attempt. `failed` means that the sender of the log knows that it failed. Without a
    verdict, nothing else is known."""
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
        evidence=root.evidence[:_MAX_EVIDENCE] if root else (),
    )


def record_of(verdict: Verdict, attempt: int) -> AttemptRecord:
    """Returns the record of an attempt that is kept for later decisions."""
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
