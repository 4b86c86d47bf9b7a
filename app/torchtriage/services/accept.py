"""Accepts uploaded logs: stores them with an incident in state `received`, or stores nothing and raises an error."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

from sqlalchemy.orm import Session

from torchtriage.domain.incident import Incident, Job, State, StoredFile
from torchtriage.errors import UnreadableLog
from torchtriage.reading.blocks import BINARY, blocks, holds_text
from torchtriage.reading.omission_notice import omission_line
from torchtriage.reading.redaction.encoded_secrets import unspelled, without_spelled_secrets
from torchtriage.reading.redaction.known_secrets import KnownSecrets
from torchtriage.reading.redaction.redact import redact, redacted
from torchtriage.reading.unpack import UnpackBudget, Upload, unpack
from torchtriage.services.service import Service
from torchtriage.services.upload_progress import Accepted, UploadedLog
from torchtriage.storage import incidents, new_incidents, node_reports, provisional, triage_claims
from torchtriage.storage.blob_writer import BlobWriter
from torchtriage.storage.new_incidents import Received


def accept(service: Service, job: Job, uploads: Iterable[Upload], at: datetime | None = None) -> Accepted:
    """Stores the logs of one failed run and returns their incident. On return, files and row are durable. `at` is the
    time of receipt; by default now.

    Raises UnreadableLog, LogTooLarge, StorageUnavailable and the errors of reading the uploads; then nothing is stored.
    """
    return accept_later(service, job, uploads, at).result()


def accept_later(service: Service, job: Job, uploads: Iterable[Upload], at: datetime | None = None) -> Future[Accepted]:
    """Like `accept`, but returns a future. On return, the files are durable; when the future has its result, the row is
    durable too."""
    with ExitStack() as stack:
        stack.enter_context(service.uploads.counted())
        files: list[StoredFile] = []
        writers: list[BlobWriter] = []
        for file in logs(uploads, service.settings.max_log_bytes):
            writer = stack.enter_context(service.blobs.writing())
            for chunk in file.chunks:
                writer.write(chunk)
            files.append(StoredFile(file.name, *writer.finish()))
            writers.append(writer)
        if job.exit_code is None and job.state is None:  # an empty log is accepted if the sender says how its run ended
            refuse_empty(files)
        service.blobs.keep(writers)
        kept = Received(_clean(job), new_incidents.log_of(files), at or datetime.now(UTC))
        arrival = UploadedLog(kept, tuple(writers), stack.pop_all().close)
    return service.upload_commits.put(arrival, partial(_record, service), lambda arrival: arrival.close())


def logs(uploads: Iterable[Upload], limit: int) -> Iterator[Upload]:
    """Yields the log files inside the uploads, with unique names, in UTF-8 and without secrets. Read each file to its
    end before taking the next. A file of an archive that is not text is replaced by one line that says so.

    Raises UnreadableLog for a broken file or if no file is text, and LogTooLarge for more than `limit` bytes.
    """
    budget = UnpackBudget(limit)
    names: dict[str, int] = {}  # how many files had each name
    known = KnownSecrets()  # shared by all files: one rank may print the environment, and another a value from it
    left_out, some_text = "", False
    for upload in uploads:
        for file in unpack(upload, budget):
            given = redact(file.name)
            name = given
            while name in names:
                names[given] += 1
                name = f"{given}#{names[given]}"
            names[name] = 1
            first = next(file.chunks, b"") if file.member else b""
            chunks = chain((first,), file.chunks) if first else file.chunks
            if file.member and not holds_text(first):
                deque(chunks, maxlen=0)  # reads past this file, because the next one follows it in the archive
                left_out, chunks = left_out or name, iter((omission_line(BINARY),))
            else:
                some_text = True
            clean = redacted(blocks(unspelled(chunks), name), known)
            yield Upload(name, without_spelled_secrets(clean))
    if left_out and not some_text:
        raise UnreadableLog(f"{left_out}: {BINARY}")


def refuse_empty(files: list[StoredFile]) -> None:
    """Raises UnreadableLog if there is no file, or if all files are empty."""
    if not any(file.bytes for file in files):
        raise UnreadableLog("the log is empty: nothing was sent" if files else "no log was sent")


def _clean(job: Job) -> Job:
    """Returns the job without secrets. URLs and labels can contain them."""
    texts = [value for value in asdict(job).values() if isinstance(value, str)]
    words = "\n".join([*texts, *(f"{name}={value}" for name, value in job.labels.items())]).encode("utf-8", "replace")
    if b"".join(redacted([words])) == words:  # checks all texts at once, because checking each is slow
        return job
    given: dict[str, Any] = {name: redact(value) for name, value in asdict(job).items() if isinstance(value, str)}
    labels = {}
    for name, value in job.labels.items():
        shown = redact(f"{name}={value}")  # a label's name can show that its value is a secret
        clean = shown.removeprefix(f"{name}=") if shown.startswith(f"{name}=") else redact(value)
        labels[redact(name)] = clean
    return replace(job, labels=labels, **given)


def _record(service: Service, arrivals: list[UploadedLog]) -> list[Accepted]:
    """Records all uploads in one durable transaction."""
    with service.database.transaction() as session:
        within = timedelta(seconds=service.settings.join_seconds)
        added, replaced = _added(session, [arrival.received for arrival in arrivals], within)
        digests = _lock_files(service, session, arrivals)
        again = triage_claims.retry_failed(session, digests)
        accepted = [
            Accepted(_incident(session, arrival.received, known, new), new)
            for arrival, (known, new) in zip(arrivals, added, strict=True)
        ]
        fresh = [one.incident for one in accepted if one.new and one.incident_id not in replaced]
        service.queue.put(session, [(incident.id, incident.log.bytes) for incident in fresh])
        if again or replaced:  # these incidents may be in the queue already
            service.queue.put(session, triage_claims.waiting(session, datetime.now(UTC)))
    service.counters.accepted(len(fresh))
    return accepted


def _added(session: Session, received: list[Received], within: timedelta) -> tuple[list[tuple[str, bool]], set[str]]:
    """Returns, for each log, the incident's id and whether to triage it; and the ids of incidents that existed before:
    other nodes reported the same run `within` this time, or the incident was provisional."""
    node_reports.lock_jobs(session, received if within else [])
    done: dict[int, tuple[str, bool]] = {}
    before: set[str] = set()
    for at, one in enumerate(received):
        if within and one.job.node_key is not None:  # one by one, because the next log may be of the same run
            known, new, was_there = node_reports.add(session, one, within)
            done[at] = known, new
            before |= {known} if was_there else set()
        elif one.job.provisional is not None and (replaced := provisional.replace(session, one)) is not None:
            done[at] = replaced, True
            before.add(replaced)
    others = [at for at in range(len(received)) if at not in done]
    done |= dict(zip(others, new_incidents.add(session, [received[at] for at in others]), strict=True))
    return [done[at] for at in range(len(received))], before


def _lock_files(service: Service, session: Session, arrivals: list[UploadedLog]) -> list[str]:
    """Locks the files of these logs, so that no other process deletes them. Stores again those that were deleted after
    they were written. Returns the digests of all files."""
    written = {
        file.sha256: writer
        for arrival in arrivals
        for file, writer in zip(arrival.received.log.files, arrival.writers, strict=True)
    }
    incidents.lock_files(session, written, shared=True)
    # An incident with the same bytes may have been deleted meanwhile, and its file too.
    service.blobs.keep([written[digest] for digest in service.blobs.missing(list(written))])
    return list(written)


def _incident(session: Session, one: Received, incident_id: str, new: bool) -> Incident:
    if new and one.job.node_key is None:
        return Incident(incident_id, State.RECEIVED, one.at, one.job, one.log)
    return incidents.read(session, incident_id)
