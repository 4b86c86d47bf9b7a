"""Triages one stored log and stores the result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from torchtriage.causality.ending import JOB_STATE, JOB_STATUS
from torchtriage.domain.incident import Job, StoredLog
from torchtriage.engine import PROVISIONAL
from torchtriage.errors import NotFound, TriageError
from torchtriage.lazy_regex import lazy_regex
from torchtriage.queue.subprocess_calls import Interrupted
from torchtriage.reading.redaction.redact import redact
from torchtriage.services.alerting import put_notices
from torchtriage.services.decisions import grade_earlier
from torchtriage.services.engine_runner import Order, Triaged
from torchtriage.services.job_cost import gpu_hours_lost
from torchtriage.services.service import Service
from torchtriage.storage import triage_claims, verdicts
from torchtriage.storage.database import StorageUnavailable
from torchtriage.storage.triage_claims import Claimed
from torchtriage.storage.verdicts import NewVerdict

log = logging.getLogger(__name__)
# A job, an array task, or a component of a heterogeneous job.
_SLURM_ID = lazy_regex(r"[0-9]+(?:_[0-9]+)?(?:\+[0-9]+)?")
_MAX_WAIT = 1.0  # seconds; this log is already durable, the ones being uploaded are not
_PAUSES = (0.1, 0.5, 1.0, 2.0)  # seconds between tries to store a result
_LOST = "the triage process died {} times while it read this log; the log may be the cause"


def triage_incident(service: Service, incident_id: str) -> None:
    """Moves an incident from received through triaging to triaged, or to failed with the reason. Does nothing if it is
    final.

    Raises StorageUnavailable and Interrupted if it must be tried again later.
    """
    service.uploads.wait_for_uploads(_MAX_WAIT)
    with service.claim_commits.coming():
        claimed = service.claim_commits.put(incident_id, partial(_claim, service)).result()
    if claimed is None:
        return
    if claimed.tries > triage_claims.MAX_TRIES:
        _fail(service, incident_id, _LOST.format(triage_claims.MAX_TRIES))
        return
    with service.verdict_commits.coming():
        _triage(service, incident_id, claimed)


def _claim(service: Service, incident_ids: list[str]) -> list[Claimed | None]:
    # Not durable: after a power loss the incidents are waiting, as before.
    with service.database.transaction(durable=False) as session:
        claimed = triage_claims.claim(session, incident_ids, datetime.now(UTC))
    return [claimed.get(incident_id) for incident_id in incident_ids]


def _triage(service: Service, incident_id: str, claimed: Claimed) -> None:
    began = time.monotonic()
    try:
        triaged = service.triager.run(order_of(claimed.log, claimed.job))
    except (StorageUnavailable, Interrupted) as error:
        log.warning("incident %s waits for another attempt: %s", incident_id, error.message)
        with service.database.transaction(durable=False) as session:
            triage_claims.hand_back(session, incident_id)
        raise
    except NotFound as error:  # stores nothing if the incident was deleted meanwhile together with its log
        _fail(service, incident_id, f"{triage_claims.NO_LOG}missing: {error.detail.get('sha256')}")
    except TriageError as error:
        _fail(service, incident_id, error.message)
    except Exception as error:  # an error on one log must not stop the service
        log.exception("incident %s: the triage failed", incident_id)
        _fail(service, incident_id, f"the triage failed: {type(error).__name__}: {error}")
    else:
        service.queue.release(incident_id)
        _save(service, incident_id, claimed, triaged, time.monotonic() - began)


def order_of(log: StoredLog, job: Job) -> Order:
    """Returns the triager's order for a stored log."""
    files = tuple((file.name, file.sha256) for file in log.files)
    # People copy these commands, so a value that a shell might interpret is not put in.
    slurm_id = job.job_id if job.scheduler == "slurm" and _SLURM_ID.fullmatch(job.job_id or "") else None
    ended = ((JOB_STATUS, None if job.exit_code is None else str(job.exit_code)), (JOB_STATE, job.state))
    open_ = (PROVISIONAL, "true" if job.provisional else None)
    known = tuple((name, value) for name, value in (("job", slurm_id), *ended, open_) if value)
    return Order(files, log.bytes, known=known)


def _save(service: Service, incident_id: str, claimed: Claimed, triaged: Triaged, seconds: float) -> None:
    summary = replace(triaged.summary, gpu_hours=gpu_hours_lost(claimed.job, triaged.verdict))
    replaceable = claimed.log.sha256 if claimed.job.provisional is not None or claimed.job.nodes else None
    found = NewVerdict(incident_id, triaged.verdict, summary, claimed.job.job_id, replaceable)
    if _patiently(lambda: service.verdict_commits.put(found, partial(_keep, service)).result()):
        service.counters.triaged(summary, seconds, triaged.verdict.provisional)


def _keep(service: Service, found: list[NewVerdict]) -> list[bool]:
    """Stores verdicts. Returns, for each, whether it was stored. Alerts, and grades of decisions about earlier
    attempts, are written in the same transaction."""
    now = datetime.now(UTC)
    with service.database.transaction(durable=False) as session:
        kept = verdicts.save(session, found, now, service.settled.is_set())
        saved = [one for one, was_kept in zip(found, kept, strict=True) if was_kept]
        for one in saved:
            put_notices(session, service, one.incident_id)
        # Attempts can only be compared if the job's id is known.
        grade_earlier(session, [one.incident_id for one in saved if one.job_id], now)
        return kept


def _fail(service: Service, incident_id: str, failure: str) -> None:
    failure = redact(failure)
    if _patiently(lambda: _keep_failure(service, incident_id, failure)):
        log.warning("incident %s has failed: %s", incident_id, failure)
        service.counters.failed()


def _keep_failure(service: Service, incident_id: str, failure: str) -> bool:
    with service.database.transaction(durable=False) as session:
        kept = verdicts.save_failure(session, incident_id, failure, datetime.now(UTC))
        if kept:
            put_notices(session, service, incident_id)
        return kept


def _patiently(keep: Callable[[], bool]) -> bool:
    """Returns the result of `keep`: whether it stored something.

    Tries again if the database is unavailable, because losing a result would cost a whole triage. Raises
    StorageUnavailable.
    """
    for pause in _PAUSES:
        try:
            return keep()
        except StorageUnavailable:
            time.sleep(pause)
    return keep()
