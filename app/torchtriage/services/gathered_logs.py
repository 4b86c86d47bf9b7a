"""Logs that arrive in pieces while their jobs run. Pieces are stored durably; each job becomes one incident.

A job that is silent for a while becomes a provisional incident, which a later report replaces. A job that ended, that
somebody asks for, or that is silent for longer becomes a final incident, and its pieces are deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from torchtriage.domain.access import AuditLine
from torchtriage.domain.gathered_log import GatheredJob, JobPiece
from torchtriage.domain.timestamps import iso
from torchtriage.errors import BadInput, TriageError
from torchtriage.reading.redaction.redact import redacted
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import accept
from torchtriage.services.otlp_records import Sorted
from torchtriage.services.service import Service
from torchtriage.storage import audit_log, gathered_logs
from torchtriage.storage.database import StorageUnavailable

log = logging.getLogger(__name__)
RETRY_AFTER = 60  # seconds
_SOURCE = "otel"  # value of the label `source` of these incidents


class TooMuchGathered(TriageError):
    """The pieces of all jobs have reached the size limit. This ends when some jobs become incidents."""

    status = 429
    code = "too_much_gathered"


def keep_pieces(service: Service, come: Sorted, now: datetime | None = None) -> None:
    """Stores the pieces durably, without known kinds of secrets.

    Raises TooMuchGathered and StorageUnavailable; then nothing is stored.
    """
    now = now or datetime.now(UTC)
    clean = [_clean(piece) for piece in come.pieces]
    settings = service.settings
    with service.database.transaction() as session:
        size = sum(len(piece.content) for job in clean for piece in job.pieces)
        if gathered_logs.total(session) + size > settings.otlp_total_bytes:
            raise TooMuchGathered(
                "the logs being gathered have reached TRIAGE_OTLP_TOTAL_BYTES", retry_after=RETRY_AFTER
            )
        # Always in the same order, so that no two requests wait for each other.
        for job in sorted(clean, key=lambda job: job.key):
            gathered_logs.add(session, job, now, settings.otlp_job_bytes)


def list_gathered(service: Service) -> list[GatheredJob]:
    """Returns the jobs that have sent lines and are not final incidents yet."""
    with service.database.reading() as session:
        return gathered_logs.listed(session)


def end_gathering(service: Service, job_id: str, by: str) -> str:
    """Makes a final incident of a job now, and returns its id.

    Raises NotFound, and UnreadableLog if nothing can be read.
    """
    with service.database.reading() as session:
        job = gathered_logs.read(session, job_id)
    incident = _report(service, job, provisional=False)
    with service.database.transaction() as session:
        audit_log.add(session, AuditLine(datetime.now(UTC), by, "end", f"incident {incident}", {}))
    return incident


def report_due(service: Service, now: datetime | None = None) -> list[str]:
    """Makes incidents of jobs that ended or are silent. Returns their ids. Raises StorageUnavailable."""
    now = now or datetime.now(UTC)
    silent = timedelta(seconds=service.settings.otlp_silent_seconds)
    over = timedelta(seconds=service.settings.otlp_end_seconds)
    made = []
    for job in list_gathered(service):
        quiet = now - job.last_at
        final = job.ended or quiet >= over
        if not final and (quiet < silent or (job.reported_at is not None and job.reported_at >= job.last_at)):
            continue
        try:
            made.append(_report(service, job, provisional=not final, now=now))
        except StorageUnavailable:
            raise
        except BadInput as problem:  # another try would fail too
            log.warning("the gathered log of %s is dropped: %s", job.job.job_id or job.job.job_name, problem.message)
            _forget(service, job)
        except TriageError as problem:
            log.warning("a gathered log is no incident yet: %s", problem.message)
    return made


def _report(service: Service, job: GatheredJob, provisional: bool, now: datetime | None = None) -> str:
    with service.database.reading() as session:
        names, newest = gathered_logs.streams(session, job.id)
    known = (
        job.job.job_id or f"{job.job.job_name}@{job.since:%Y%m%dT%H%M%SZ}"
    )  # a later run with this name is another job
    details = replace(job.job, job_id=known, labels=job.job.labels | {"source": _SOURCE}, provisional=provisional)
    details = replace(details, started_at=iso(job.since), ended_at=iso(job.last_at))
    with ExitStack() as stack:
        session = stack.enter_context(service.database.reading())

        def chunks(name: str) -> Iterator[bytes]:
            yield from gathered_logs.content(session, job.id, name, newest)

        incident = accept(service, details, [Upload(name, chunks(name)) for name in names]).incident_id
    if provisional:
        with service.database.transaction() as session:
            gathered_logs.note_report(session, job.id, now or datetime.now(UTC))
    else:
        _forget(service, job, newest)
    return incident


def _forget(service: Service, job: GatheredJob, newest: int = 2**62) -> None:
    with service.database.transaction() as session:
        gathered_logs.forget(session, job.id, newest)


def _clean(come: JobPiece) -> JobPiece:
    pieces = tuple(replace(piece, content=b"".join(redacted([piece.content]))) for piece in come.pieces)
    return replace(come, pieces=pieces)
