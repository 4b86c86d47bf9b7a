"""Triages one stored log and keeps what came out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from app.domain.entry import KnowledgeBase
from app.domain.incident import Finding, Incident, StoredLog
from app.domain.verdict import Verdict
from app.errors import NotFound, TriageError
from app.reading.sources import LogFile, Run
from app.services.service import Service
from app.storage import incidents
from app.storage.blobs import BlobStore
from app.storage.database import StorageUnavailable

log = logging.getLogger(__name__)


def triage_incident(service: Service, incident_id: str) -> None:
    """received → triaging → triaged, or failed with the reason; does nothing where another has the incident.

    Where the storage fails, the incident stays as it is and is taken up again at the next start.
    """
    try:
        _triage(service, incident_id)
    except StorageUnavailable as error:
        log.error("incident %s waits for the next start: %s", incident_id, error.message)
    except NotFound:
        log.info("incident %s was deleted before its triage ended", incident_id)


def run_of(blobs: BlobStore, stored: StoredLog) -> Run:
    """-> a stored log as what the engine reads."""

    def files() -> Iterator[LogFile]:
        for file in sorted(stored.files, key=lambda file: file.name):
            yield LogFile(file.name, partial(blobs.chunks, file.sha256))

    return Run(_name(stored), files, several=len(stored.files) > 1)


def finding_of(verdict: Verdict, knowledge: KnowledgeBase) -> Finding:
    """-> what of a verdict is filtered, grouped and searched by, in both languages."""
    root = verdict.root_cause
    entry = knowledge.entries.get(root.entry) if root and root.entry else None
    texts = [verdict.signature, entry and f"{entry.id}\n{entry.title.en}\n{entry.title.zh}", *verdict.run.hosts]
    if root:
        texts += [root.title, root.host, *(line.text for line in root.evidence)]
        texts += [str(value) for key, value in (root.exception or {}).items() if key in ("type", "message")]
    return Finding(
        outcome=verdict.outcome,
        fingerprint=verdict.fingerprint,
        signature=verdict.signature,
        entry=root.entry if root else None,
        title=root.title if root else None,
        host=root.host if root else None,
        text="\n".join(text for text in texts if text),
    )


def _triage(service: Service, incident_id: str) -> None:
    # A power loss may take away what is kept from here on: the next start finds the incident waiting.
    with service.database.transaction(durable=False) as session:
        if not incidents.claim(session, incident_id):
            return
        incident = incidents.read(session, incident_id)
    try:
        verdict = service.engine.triage(run_of(service.blobs, incident.log))
    except (StorageUnavailable, NotFound):
        raise
    except TriageError as error:
        _fail(service, incident, error.message)
    except Exception as error:  # One log that the engine can't take must not end the service.
        log.exception("incident %s: the triage broke", incident_id)
        _fail(service, incident, f"the triage broke: {type(error).__name__}: {error}")
    else:
        _save(service, incident, verdict)


def _save(service: Service, incident: Incident, verdict: Verdict) -> None:
    finding = finding_of(verdict, service.knowledge)
    with service.database.transaction(durable=False) as session:
        incidents.save_verdict(session, incident.id, verdict.as_dict(), finding, datetime.now(UTC))


def _fail(service: Service, incident: Incident, failure: str) -> None:
    with service.database.transaction(durable=False) as session:
        incidents.save_failure(session, incident.id, failure, datetime.now(UTC))


def _name(stored: StoredLog) -> str:
    return stored.files[0].name if len(stored.files) == 1 else f"{len(stored.files)} files"
