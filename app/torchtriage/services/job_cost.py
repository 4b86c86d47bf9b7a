"""What a failed run cost: its job and its verdict in, GPU hours that were lost out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from torchtriage.domain.incident import Job


def gpu_hours_lost(job: Job, verdict: dict[str, Any]) -> float | None:
    """-> GPUs × hours from the start of the run, or from its last checkpoint, to its end; None where that isn't known.

    Start and end are taken from one clock: both as the sender said them, or both as the log has them.
    """
    run = verdict["run"]
    gpus = job.gpus if job.gpus is not None else _gpus(run)
    seconds = _seconds(job.started_at, job.ended_at)
    if seconds is None:
        seconds = _seconds(run.get("started"), run.get("ended"))
    since_checkpoint = _seconds(run.get("checkpoint"), run.get("ended"))
    if since_checkpoint is not None and (seconds is None or since_checkpoint < seconds):
        seconds = since_checkpoint
    if verdict["outcome"] == "healthy" or gpus is None or seconds is None:
        return None
    return round(gpus * seconds / 3600, 4)


def _gpus(run: dict[str, Any]) -> int | None:
    """-> one GPU a rank, where the log shows that the ranks had some."""
    versions = run.get("versions") or {}
    return run.get("world_size") if versions.get("cuda") or versions.get("nccl") else None


def _seconds(start: str | None, end: str | None) -> float | None:
    try:
        took = datetime.fromisoformat(end or "") - datetime.fromisoformat(start or "")
    except (ValueError, TypeError):  # no time, or one with a zone and one without
        return None
    return took.total_seconds() if took.total_seconds() >= 0 else None
