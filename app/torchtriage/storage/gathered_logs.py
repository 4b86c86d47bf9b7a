"""Logs that arrive in pieces, in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.gathered_log import GatheredJob, JobPiece
from torchtriage.domain.incident import Job
from torchtriage.domain.json_form import from_json_form
from torchtriage.errors import NotFound
from torchtriage.storage.database import insert
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import GatheredJobRow, GatheredPieceRow

_HEAD = 8  # the first 1/8 of a job's limit is reserved for its first lines
_MAX_JOBS = 10_000  # maximum jobs per query
_BATCH_SIZE = 64  # pieces per query
_UNSYNCHRONIZED = {"synchronize_session": False}


def total(session: Session) -> int:
    """Returns the total bytes of all jobs."""
    return int(session.execute(select(func.coalesce(func.sum(GatheredJobRow.bytes), 0))).scalar_one())


def add(session: Session, come: JobPiece, now: datetime, most: int) -> None:
    """Stores new pieces of a job. If the job then has more than `most` bytes, deletes the oldest lines after its
    beginning."""
    lines, size = sum(piece.lines for piece in come.pieces), sum(len(piece.content) for piece in come.pieces)
    none = {"bytes": 0, "lines": 0, "dropped": 0, "ended": False, "job": {}}
    adding = insert(session, GatheredJobRow).values(key=come.key, since=now, last_at=now, **none)
    session.execute(adding.on_conflict_do_nothing(index_elements=["key"]))
    own = select(GatheredJobRow).where(GatheredJobRow.key == come.key).with_for_update()
    row = session.execute(own, execution_options={"populate_existing": True}).scalar_one()
    row.job = come.job.to_json() | row.job  # earlier values win, because the job's later reports are recognized by them
    row.last_at, row.ended = now, row.ended or come.ended
    row.bytes, row.lines = row.bytes + size, row.lines + lines
    number, held = row.number, row.bytes
    for piece in come.pieces:
        session.add(
            GatheredPieceRow(
                job_number=number,
                stream=piece.stream,
                began=piece.began,
                lines=piece.lines,
                size=len(piece.content),
                head=held <= most // _HEAD,
                content=zlib.compress(piece.content, 1),
            )
        )
    session.flush()
    if held > most:
        _drop(session, number, held - most)


def listed(session: Session) -> list[GatheredJob]:
    """Returns at most _MAX_JOBS jobs: ended ones first, then the one that has been silent longest."""
    row = GatheredJobRow
    query = select(row).order_by(row.ended.desc(), row.last_at, row.number).limit(_MAX_JOBS)
    return [_job(row) for row in session.execute(query).scalars()]


def read(session: Session, job_id: str) -> GatheredJob:
    """Returns a job. Raises NotFound."""
    row = session.get(GatheredJobRow, number_of(job_id))
    if row is None:
        raise NotFound("no such job is being gathered", job=job_id[:100])
    return _job(row)


def streams(session: Session, job_id: str) -> tuple[list[str], int]:
    """Returns the names of a job's streams in order of arrival, and the number of its newest piece."""
    query = select(GatheredPieceRow.stream, func.min(GatheredPieceRow.number), func.max(GatheredPieceRow.number))
    query = query.where(GatheredPieceRow.job_number == number_of(job_id)).group_by(GatheredPieceRow.stream)
    found = sorted(session.execute(query), key=lambda row: row[1])
    return [name for name, _, _ in found], max((newest for _, _, newest in found), default=0)


def content(session: Session, job_id: str, stream: str, newest: int) -> Iterator[bytes]:
    """Yields the lines of a stream in the order written, up to the piece with the number `newest`."""
    row = GatheredPieceRow
    own = (row.job_number == number_of(job_id), row.stream == stream, row.number <= newest)
    numbers = session.execute(select(row.number).where(*own).order_by(row.began, row.number)).scalars().all()
    for start in range(0, len(numbers), _BATCH_SIZE):
        wanted = numbers[start : start + _BATCH_SIZE]
        read = session.execute(select(row.number, row.content).where(row.number.in_(wanted)))
        found = {number: content for number, content in read}  # noqa: C416  mypy does not accept a row as a pair
        for number in wanted:
            if number in found:  # otherwise it was deleted meanwhile
                yield zlib.decompress(found[number])


def note_report(session: Session, job_id: str, at: datetime) -> None:
    """Records that the job became a provisional incident."""
    session.execute(update(GatheredJobRow).where(GatheredJobRow.number == number_of(job_id)).values(reported_at=at))


def forget(session: Session, job_id: str, newest: int) -> None:
    """Deletes a job with its pieces up to the number `newest`. Later pieces begin a new job."""
    number, row = number_of(job_id), GatheredPieceRow
    job = session.get(GatheredJobRow, number, with_for_update=True)
    session.execute(delete(row).where(row.job_number == number, row.number <= newest))
    if job is None:
        return
    counts = select(func.count(), func.coalesce(func.sum(row.size), 0), func.coalesce(func.sum(row.lines), 0))
    left, job.bytes, job.lines = session.execute(counts.where(row.job_number == number)).one()
    if left:
        job.since, job.ended, job.reported_at, job.dropped = job.last_at, False, None, 0
        session.flush()
    else:
        session.execute(
            delete(GatheredJobRow).where(GatheredJobRow.number == number), execution_options=_UNSYNCHRONIZED
        )


def _drop(session: Session, number: int, over: int) -> None:
    row = GatheredPieceRow
    later = select(row.number, row.size, row.lines).where(row.job_number == number, row.head.is_(False))
    going: list[int] = []
    size = lines = 0
    for piece, its_bytes, its_lines in session.execute(later.order_by(row.number)):
        if size >= over:
            break
        going.append(piece)
        size, lines = size + its_bytes, lines + its_lines
    session.execute(delete(row).where(row.number.in_(going)), execution_options=_UNSYNCHRONIZED)
    changed = {
        "bytes": GatheredJobRow.bytes - size,
        "lines": GatheredJobRow.lines - lines,
        "dropped": GatheredJobRow.dropped + lines,
    }
    changing = update(GatheredJobRow).where(GatheredJobRow.number == number).values(changed)
    session.execute(changing, execution_options=_UNSYNCHRONIZED)


def _job(row: GatheredJobRow) -> GatheredJob:
    return GatheredJob(
        id=str(row.number),
        job=from_json_form(Job, row.job),
        since=row.since,
        last_at=row.last_at,
        bytes=row.bytes,
        lines=row.lines,
        dropped=row.dropped,
        ended=row.ended,
        reported_at=row.reported_at,
    )
