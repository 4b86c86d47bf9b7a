"""What a failed run cost: GPU hours lost, from the job and the verdict."""

from __future__ import annotations

from datetime import datetime

from torchtriage.domain.incident import Job
from torchtriage.domain.verdict import FAILED, RunFacts, Verdict


def gpu_hours_lost(job: Job, verdict: Verdict) -> float | None:
    """Returns the number of GPUs times the hours of lost work: from the last checkpoint to the failure, or else from
    the start of the run to its end. None if that is unknown or if the log shows no failure.

    Start and end come from one clock: either both from the sender or both from the log.
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
    """Returns the seconds from the run's last checkpoint to its failure, both from the log."""
    checkpoint, root = verdict.run.checkpoint, verdict.root_cause
    failed_at = (root.time if root else None) or verdict.run.ended
    return _seconds(checkpoint.time, failed_at) if checkpoint else None


def _gpus(run: RunFacts) -> int | None:
    """Returns one GPU per rank if the log shows that the ranks use GPUs, else None."""
    return run.world_size if run.versions.get("cuda") or run.versions.get("nccl") else None


def _seconds(start: str | None, end: str | None) -> float | None:
    try:
        took = datetime.fromisoformat(end or "") - datetime.fromisoformat(start or "")
    except (ValueError, TypeError):  # a time is missing, or only one of the two has a time zone
        return None
    return took.total_seconds() if took.total_seconds() >= 0 else None
