"""All parts of the service: opens them from the settings and closes them at the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from sqlalchemy.orm import Session

from torchtriage.chat.channels import NOWHERE, Channels, open_channels
from torchtriage.decision.policy import Policy, load_policy
from torchtriage.domain.entry import KnowledgeBase
from torchtriage.engine import VERSION
from torchtriage.errors import SettingError, TriageError
from torchtriage.knowledge.cache import cache_folder, load
from torchtriage.queue.memory_queue import MemoryQueue
from torchtriage.reading.redaction.redact import keep_compiled, redacted
from torchtriage.services.engine_runner import InProcess, InProcesses, Triager
from torchtriage.services.heartbeats import QUEUE, Heartbeats
from torchtriage.services.knowledge_reload import KnowledgeFolders
from torchtriage.services.learned_folder import load_with_learned
from torchtriage.services.process_metrics import Counters
from torchtriage.services.upload_progress import Accepted, UploadCounter, UploadedLog
from torchtriage.settings import Settings
from torchtriage.settings.links import LinkTemplates, link_templates
from torchtriage.storage import fingerprint_upgrade, incidents, triage_claims, verdicts
from torchtriage.storage.blobs import BlobStore
from torchtriage.storage.database import Database, postgres_address
from torchtriage.storage.file_permissions import make_private
from torchtriage.storage.group_commit import GroupCommit
from torchtriage.storage.schema_upgrade import upgrade
from torchtriage.storage.triage_claims import Claimed
from torchtriage.storage.verdicts import NewVerdict

log = logging.getLogger(__name__)
_TIMEOUT = 10  # seconds that running triages may take after the service begins to stop
_GATHERING = 0.1  # seconds that a verdict waits for other running triages, to be stored in one transaction with theirs
_CLAIMING = 0.02  # seconds that a new triage waits for others that begin, to be claimed in one transaction with them
_SILENT = 30  # maximum seconds without a heartbeat of the queue


class Queue(Protocol):
    """The incidents that wait for triage, by id."""

    def put(self, session: Session, waiting: Sequence[tuple[str, int]]) -> None:
        """Queues these ids when the session's transaction is committed. Each comes with the size of its log
        in bytes."""
        ...

    def find(self, incident_id: str) -> Future[None] | None:
        """Returns a future that ends when this id's triage has ended, or None if there is nothing to wait for."""
        ...

    def start(self) -> None:
        """Starts working through the queue."""
        ...

    def release(self, incident_id: str) -> None:
        """Called by this id's triage when only its result is left to store, so that another triage can begin."""
        ...

    def is_dead(self) -> bool:
        """Returns whether the queue was started and not stopped, but no longer works."""
        ...

    def stop(self) -> None:
        """Waits for the running triages to end."""
        ...


@dataclass(slots=True, eq=False)
class Service:
    """The first argument of the functions in torchtriage.services. Only `knowledge` and `folders` ever change, and
    always together: when packs or approved entries are added or removed (services.learned_knowledge).

    `settled` is set when all group fingerprints are checked with the current knowledge.
    """

    settings: Settings
    database: Database
    blobs: BlobStore
    knowledge: KnowledgeBase
    folders: KnowledgeFolders
    triager: Triager
    queue: Queue
    channels: Channels = NOWHERE
    policy: Policy = field(default_factory=load_policy)
    links: LinkTemplates = field(default_factory=LinkTemplates)
    counters: Counters = field(default_factory=Counters)
    upload_commits: GroupCommit[UploadedLog, Accepted] = field(default_factory=GroupCommit)
    uploads: UploadCounter = field(default_factory=UploadCounter)
    claim_commits: GroupCommit[str, Claimed | None] = field(default_factory=lambda: GroupCommit(_CLAIMING, 1))
    verdict_commits: GroupCommit[NewVerdict, bool] = field(default_factory=lambda: GroupCommit(_GATHERING))
    heartbeats: Heartbeats = field(default_factory=Heartbeats)
    settled: threading.Event = field(default_factory=threading.Event)

    @property
    def knowledge_version(self) -> str:
        """The version of engine and knowledge, by which current verdicts are recognized."""
        return verdicts.knowledge_version(VERSION, self.knowledge.digest)


def open_service(settings: Settings, work: Callable[[Service, str], None], working: bool = True) -> Service:
    """Returns a service that is ready: database migrated, knowledge loaded, incidents that a crash left queued again.

    `work` triages one incident. If `working` is False, another process works through the queue. Raises SettingError,
    KnowledgeError, StorageUnavailable and WrongVersion.
    """
    for folder in settings.knowledge_dirs:
        if not folder.is_dir():
            raise SettingError(f"TRIAGE_KNOWLEDGE_DIRS: {folder} is not a folder")
    policy = load_policy(settings.policy_file, "TRIAGE_POLICY_FILE")
    links = link_templates(settings.links_file)
    keep_compiled(cache_folder())
    channels = open_channels(settings)
    make_private(settings.data_dir, settings.database)
    upgrade(settings.database)
    blobs = BlobStore(settings.blobs, settings.data_dir)
    blobs.check()
    blobs.incoming.sweep()
    database = Database(settings.database)
    sound = load_with_learned(settings, database, load)
    knowledge = sound.knowledge
    triager = InProcesses(settings, knowledge) if settings.workers else InProcess(settings, knowledge)
    # The queue needs the service and the service needs the queue, so the work looks the service up when it is called.
    holder: list[Service] = []
    heartbeats = Heartbeats()
    queue = _queue(settings, database, lambda incident_id: work(holder[0], incident_id), heartbeats)
    known_folders = KnowledgeFolders(sound.folders, knowledge, sound)
    # On SQLite each verdict occupies a thread until it is stored. Storing half of the running triages at once keeps the
    # engines busy with the others.
    verdict_commits = GroupCommit[NewVerdict, bool](_GATHERING, 0.5 if database.is_sqlite else 1)
    service = Service(
        settings, database, blobs, knowledge, known_folders, triager, queue, channels, policy, links,
        heartbeats=heartbeats, verdict_commits=verdict_commits,
    )  # fmt: skip
    service.counters.registry.register(heartbeats)
    holder.append(service)
    with database.reading() as session:
        if not fingerprint_upgrade.left(session, service.knowledge_version):
            service.settled.set()
    if working:
        queue_waiting(service)
        threading.Thread(target=_warm, args=(triager,), name="warming", daemon=True).start()
        queue.start()
        if not database.is_sqlite:  # SQLite's queue is a list in memory, without a loop
            heartbeats.expect(QUEUE, _SILENT)
    return service


def close_service(service: Service) -> None:
    """Closes all parts. A triage that does not end soon is given back, for another process or the next start."""
    patience = threading.Timer(_TIMEOUT, service.triager.interrupt)
    patience.start()
    service.upload_commits.close()
    service.queue.stop()
    for commits in (service.claim_commits, service.verdict_commits):
        commits.close(wait=False)  # for those that did not end in time
    patience.cancel()
    service.triager.close()
    service.database.close()
    service.blobs.incoming.close()


def queue_waiting(service: Service) -> None:
    """Queues incidents that need triage and are not in the queue, as after a crash or an outage of the storage.

    Raises StorageUnavailable.
    """
    with service.database.transaction(durable=False) as session:
        waiting = triage_claims.waiting(session, datetime.now(UTC))
        service.queue.put(session, waiting)
    if waiting:
        log.info("%d incidents wait for triage", len(waiting))


def _warm(triager: Triager) -> None:
    """Prepares what the first log would otherwise wait for."""
    for _ in redacted([b"\n"]):
        pass
    triager.warm()


def _queue(settings: Settings, database: Database, work: Callable[[str], None], heartbeats: Heartbeats) -> Queue:
    # More threads than engines, so that no engine is idle while threads store their results, some together.
    threads = 4 * settings.workers or 2
    if database.is_sqlite:
        return MemoryQueue(partial(_work_logging_errors, work), threads)
    from torchtriage.queue.postgres_queue import (
        PostgresQueue,  # imported here because it is slow and not needed on a laptop
    )

    def ended(incident_ids: list[str]) -> list[str]:
        with database.reading() as session:
            return incidents.ended(session, incident_ids)

    return PostgresQueue(postgres_address(settings.database), work, ended, threads, partial(heartbeats.beat, QUEUE))


def _work_logging_errors(work: Callable[[str], None], incident_id: str) -> None:
    try:
        work(incident_id)
    except TriageError as error:
        log.warning("incident %s waits for another attempt: %s", incident_id, error.message)
    except Exception:  # `queue_waiting` queues it again; log it, so that the error is seen
        log.exception("incident %s waits for another attempt: it failed", incident_id)
