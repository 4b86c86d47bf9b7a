"""Everything that the service works with, opened from settings and closed in the end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from app.domain.entry import KnowledgeBase
from app.errors import SettingError
from app.knowledge import BUILT_IN
from app.knowledge.cache import cache_folder, load
from app.queue.local import LocalQueue
from app.services.counters import Counters
from app.services.triager import InProcess, InProcesses, Triager
from app.settings import Settings
from app.storage import incidents
from app.storage.blobs import BlobStore
from app.storage.database import Database
from app.storage.upgrade import upgrade

log = logging.getLogger(__name__)
MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Service:
    """What the functions of app.services are given first."""

    settings: Settings
    database: Database
    blobs: BlobStore
    knowledge: KnowledgeBase
    triager: Triager
    queue: LocalQueue
    counters: Counters = field(default_factory=Counters)


def open_service(settings: Settings, work: Callable[[Service, str], None], resume: bool = True) -> Service:
    """-> a service that is ready: database migrated, knowledge loaded, what a crash left put back into the queue.

    `work` triages one incident; where `resume` is False, what waits is left to another process.
    Raises SettingError, KnowledgeError, StorageUnavailable, WrongVersion.
    """
    for folder in settings.knowledge_dirs:
        if not folder.is_dir():
            raise SettingError(f"TRIAGE_KNOWLEDGE_DIRS: {folder} is no folder")
    upgrade(settings.database)
    blobs = BlobStore(settings.blobs, settings.data_dir)
    blobs.check()
    blobs.incoming.sweep()
    knowledge = load([BUILT_IN, *settings.knowledge_dirs], cache_folder())
    triager = InProcesses(settings) if settings.workers else InProcess(settings)
    database = Database(settings.database)
    # The queue needs the service it works for, so the work looks the service up when it is called.
    holder: list[Service] = []
    queue = LocalQueue(lambda incident_id: work(holder[0], incident_id), max(1, settings.workers))
    service = Service(settings, database, blobs, knowledge, triager, queue)
    holder.append(service)
    if resume:
        _resume(service)
    return service


def close_service(service: Service) -> None:
    """Ends what is being worked on and closes everything."""
    service.queue.stop()
    service.triager.close()
    service.database.close()
    service.blobs.incoming.close()


def _resume(service: Service) -> None:
    with service.database.transaction() as session:
        failure = f"its triage ended {MOST_TRIES} times without an answer, the last time with the service itself"
        incidents.release_claimed(session, MOST_TRIES, failure)
        waiting = incidents.waiting(session)
    if waiting:
        log.info("%d incidents were waiting for their triage", len(waiting))
    for incident_id, size in waiting:
        service.queue.submit(incident_id, size)
