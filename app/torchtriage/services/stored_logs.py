"""Compares stored logs with the rows that name them: finds logs that are damaged or missing, or without an incident."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from torchtriage.errors import DamagedLog, NotFound, StorageUnavailable, TriageError
from torchtriage.services.service import Service
from torchtriage.storage import incidents, triage_claims
from torchtriage.storage.blob_writer import concurrently
from torchtriage.storage.blobs import BlobStore
from torchtriage.storage.database import Database

log = logging.getLogger(__name__)
_READ_AT_ONCE = 100
_REMOVED_AT_ONCE = 10  # few, because nobody can accept a log of the same folder meanwhile
_AGE = timedelta(days=1)  # a younger log may belong to a running upload, which would have to write it again
_SHARE, _FEW = 0.25, 20  # if more than this would be removed, the database may not belong to these logs


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A stored log that is damaged or missing, the reason, and its incidents."""

    sha256: str
    why: str
    incidents: tuple[str, ...]


def check(database: Database, blobs: BlobStore) -> Iterator[DamagedFile | None]:
    """Reads every log that an incident names. Yields its problem, or None if there is none.

    Raises StorageUnavailable if a whole batch cannot be read.
    """
    last = ""
    while True:
        with database.reading() as session:
            digests = incidents.digests_after(session, last, _READ_AT_ONCE)
        if not digests:
            return
        last = digests[-1]
        problems = concurrently(partial(_problem, blobs), digests)
        away = [found for found in problems if isinstance(found, StorageUnavailable)]
        if len(away) == _READ_AT_ONCE:
            raise away[0]
        for digest, found in zip(digests, problems, strict=True):
            having = _incidents_of(database, digest) if found else ()
            # Without incidents, the log was deleted meanwhile.
            yield DamagedFile(digest, found.message, having) if found and having else None


def remove_unused(service: Service, digests: Sequence[str]) -> int:
    """Removes those of these logs that no incident names, and returns how many. Raises StorageUnavailable."""
    with service.database.transaction(durable=False) as session:
        # Whoever accepts the same file now waits for this lock, and then writes the file again.
        incidents.lock_files(session, digests)
        unused = incidents.unused(session, digests)
        for digest in unused:
            service.blobs.remove(digest)
    return len(unused)


def unnamed(service: Service, now: datetime | None = None) -> tuple[list[str], int]:
    """Returns the stored logs that no incident names and no upload can still need, and the number of all logs.

    Raises StorageUnavailable.
    """
    before = (now or datetime.now(UTC)) - _AGE
    found: list[str] = []
    total = 0
    for page in service.blobs.listed():
        total += len(page)
        old = [stored.sha256 for stored in page if stored.at < before]
        with service.database.reading() as session:
            found += incidents.unused(session, old)
    return found, total


def sweep(service: Service, now: datetime | None = None) -> int:
    """Removes stored logs that no incident names, and returns how many. They remain if a row could not be stored, or a
    log could not be deleted with its row.

    If they are too large a part of all logs, removes none and logs an error. Raises StorageUnavailable.
    """
    found, total = unnamed(service, now)
    if len(found) > max(_FEW, _SHARE * total):
        why = f"{len(found)} of {total} stored logs belong to no incident of this database"
        service.counters.set_held_back("logs", len(found), why)
        log.error("sweep removes no stored log: %s; `torchtriage db sweep --yes` removes them", why)
        return 0
    service.counters.set_held_back("logs")
    return remove(service, found)


def remove(service: Service, found: list[str]) -> int:
    """Removes logs that `unnamed` returned, except those that an incident names by now. Returns how many. Raises
    StorageUnavailable."""
    parts = (found[at : at + _REMOVED_AT_ONCE] for at in range(0, len(found), _REMOVED_AT_ONCE))
    removed = sum(remove_unused(service, part) for part in parts)
    if removed:
        log.info("removed %d stored logs without an incident", removed)
    return removed


def _incidents_of(database: Database, digest: str) -> tuple[str, ...]:
    with database.reading() as session:
        return tuple(incidents.having(session, digest))


def _problem(blobs: BlobStore, sha256: str) -> TriageError | None:
    try:
        blobs.verify(sha256)
    except NotFound:
        return NotFound(f"{triage_claims.NO_LOG}missing: {sha256}")
    except DamagedLog as error:
        return error
    except StorageUnavailable as error:
        return StorageUnavailable(f"the stored log can't be read: {sha256}: {error.message}")
    return None
