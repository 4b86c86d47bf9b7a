"""Logs that arrive in pieces while their jobs run: the pieces of a request, and what was received of a job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from torchtriage.domain.incident import Job


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """Some lines from one writer of a job. `stream` is the name of its file in the log. `began` is the time of its
    first line in nanoseconds since 1970, or 0 if it is unknown."""

    stream: str
    began: int
    lines: int
    content: bytes


@dataclass(frozen=True, slots=True)
class JobPiece:
    """The pieces of one job in one request. `key` identifies the job. `ended` means that nothing more will come."""

    key: str
    job: Job
    pieces: tuple[StreamPiece, ...]
    ended: bool = False


@dataclass(frozen=True, slots=True)
class GatheredJob:
    """A job whose log is being received. `bytes` and `lines` are stored; `dropped` counts the lines over the limit.
    `reported_at` is when it became a provisional incident, or None."""

    id: str
    job: Job
    since: datetime
    last_at: datetime
    bytes: int
    lines: int
    dropped: int
    ended: bool
    reported_at: datetime | None = None
