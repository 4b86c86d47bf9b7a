"""Logs that come in pieces while their jobs run: what a request brought, and what is there of a job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from torchtriage.domain.incident import Job


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """Some lines of one writer of a job. `stream` is the name of its file in the log; `began` is when its first line
    was written, in nanoseconds since 1970, 0 where that is not known."""

    stream: str
    began: int
    lines: int
    content: bytes


@dataclass(frozen=True, slots=True)
class JobPiece:
    """What one request brought of a job. `key` tells the job from others; `ended` says that nothing more comes."""

    key: str
    job: Job
    pieces: tuple[StreamPiece, ...]
    ended: bool = False


@dataclass(frozen=True, slots=True)
class GatheredJob:
    """A job whose log is being gathered. `bytes` and `lines` are there; `dropped` lines came and were too many.
    `reported_at` is when it became a provisional incident, None where it did not yet."""

    id: str
    job: Job
    since: datetime
    last_at: datetime
    bytes: int
    lines: int
    dropped: int
    ended: bool
    reported_at: datetime | None = None
