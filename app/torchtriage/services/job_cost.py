"""What a failed run cost: its job and its verdict in, GPU hours that were lost out."""

from __future__ import annotations

from datetime import datetime

from torchtriage.domain.incident import Job
from torchtriage.domain.verdict import FAILED, RunFacts, Verdict


def gpu_hours_lost(job: Job, verdict: Verdict) -> float | None:
    """-> GPUs × hours whose work is lost: from the last checkpoint to the failure, else from the start of the run to
    its end; None where that isn't known,
    or the log does not show that it failed.

    Start and end are taken from one clock: both as the sender said them, or both as the log has them.
    """
    run = verdict.run
    gpus = job.gpus if job.gpus is not None else _gpus(run)
    seconds = _seconds(job.started_at, job.ended_at)
    if seconds is None:
        seconds = _seconds(run.started, run.ended)
    since_checkpoint = _since_checkpoint(verdict)
    if since_checkpoint is not None and (seconds is None or since_checkpoint < seconds):
        seconds = since_checkpoint
    if verdict.outcome not in FAILED or gpus is None or seconds is None:
        return None
    return round(gpus * seconds / 3600, 4)


def _since_checkpoint(verdict: Verdict) -> float | None:
    """-> the seconds from the run's last checkpoint to its failure, both as the log has them."""
    checkpoint, root = verdict.run.checkpoint, verdict.root_cause
    failed_at = (root.time if root else None) or verdict.run.ended
    return _seconds(checkpoint.time, failed_at) if checkpoint else None


def _gpus(run: RunFacts) -> int | None:
    """-> one GPU a rank, where the log shows that the ranks had some."""
    return run.world_size if run.versions.get("cuda") or run.versions.get("nccl") else None


def _seconds(start: str | None, end: str | None) -> float | None:
    try:
        took = datetime.fromisoformat(end or "") - datetime.fromisoformat(start or "")
    except (ValueError, TypeError):  # no time, or one with a zone and one without
        return None
    return took.total_seconds() if took.total_seconds() >= 0 else None
