"""Triages one stored log and keeps what came out."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import replace
from datetime import UTC, datetime

from app.domain.incident import Job, StoredLog
from app.errors import NotFound, TriageError
from app.queue.processes import Interrupted
from app.reading.redact import redact
from app.services.cost import gpu_hours_lost
from app.services.notify import put_notices
from app.services.service import Service
from app.services.triager import Order, Triaged
from app.storage import claims, verdicts
from app.storage.database import StorageUnavailable

log = logging.getLogger(__name__)
_SLURM_ID = re.compile(
    r"[0-9]+(?:_[0-9]+)?(?:\+[0-9]+)?"
)  # of a job, of one of an array, of a part of a heterogeneous one
_LOST = "its triage was lost {} times, over hours, with all that ran: its log may be what takes that down"


def triage_incident(service: Service, incident_id: str) -> None:
    """received → triaging → triaged, or failed with the reason; does nothing where it has ended.

    Raises StorageUnavailable and Interrupted where it is to be tried again later.
    """
    # A power loss may take away what is kept from here on: the incident is waiting then, as before.
    with service.database.transaction(durable=False) as session:
        tries = claims.claim(session, incident_id, datetime.now(UTC))
        if not tries:
            return
        job, stored = claims.work_of(session, incident_id)
    if tries > claims.MOST_TRIES:
        _fail(service, incident_id, _LOST.format(claims.MOST_TRIES))
        return
    began = time.monotonic()
    try:
        triaged = service.triager.run(order_of(stored, job))
    except (StorageUnavailable, Interrupted) as error:
        log.warning("incident %s waits for another try: %s", incident_id, error.message)
        with service.database.transaction(durable=False) as session:
            claims.hand_back(session, incident_id)
        raise
    except NotFound:
        log.warning("incident %s: its log is gone, as where it was deleted meanwhile", incident_id)
    except TriageError as error:
        _fail(service, incident_id, error.message)
    except Exception as error:  # One log that the engine can't take must not end the service.
        log.exception("incident %s: the triage broke", incident_id)
        _fail(service, incident_id, f"the triage broke: {type(error).__name__}: {error}")
    else:
        _save(service, incident_id, job, triaged, time.monotonic() - began)


def order_of(log: StoredLog, job: Job) -> Order:
    """-> a stored log as what the triager takes."""
    files = tuple((file.name, file.sha256) for file in log.files)
    # Into commands that people copy goes nothing that a shell would take for more than a name.
    told = job.job_id if job.scheduler == "slurm" and _SLURM_ID.fullmatch(job.job_id or "") else None
    return Order(files, log.bytes, known=(("job", told),) if told else ())


def _save(service: Service, incident_id: str, job: Job, triaged: Triaged, seconds: float) -> None:
    finding = replace(triaged.finding, gpu_hours=gpu_hours_lost(job, triaged.verdict))
    with service.database.transaction(durable=False) as session:
        kept = verdicts.save(session, incident_id, triaged.verdict, finding, datetime.now(UTC))
        if kept:
            put_notices(session, service, incident_id)
    if kept:
        service.counters.triaged(finding, seconds)


def _fail(service: Service, incident_id: str, failure: str) -> None:
    with service.database.transaction(durable=False) as session:
        if verdicts.save_failure(session, incident_id, redact(failure), datetime.now(UTC)):
            put_notices(session, service, incident_id)
    service.counters.failed()
