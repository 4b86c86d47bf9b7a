"""Summaries of runs in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.domain.run_summary import GoodRun, RunSummary
from torchtriage.storage.database import insert
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import IncidentRow, RunSummaryRow

_KEPT_OF_A_JOB = 3  # successful runs per job, so that an incident that arrives late finds one from before it
_KEPT = 5000  # successful runs of all jobs together


def keep_of_incident(session: Session, incident_id: str, job_name: str, summary: RunSummary, at: datetime) -> None:
    """Stores the summary of an incident's run; it replaces an earlier one. Does nothing if the incident was deleted."""
    number = number_of(incident_id)
    if session.get(IncidentRow, number) is None:
        return
    row = {"document": fields_form(summary), "at": at, "job_name": job_name, "cluster": "", "job_id": None}
    adding = insert(session, RunSummaryRow).values(incident_number=number, **row)
    session.execute(adding.on_conflict_do_update(index_elements=["incident_number"], set_=row))


def of_incident(session: Session, incident_id: str) -> RunSummary | None:
    wanted = select(RunSummaryRow.document).where(RunSummaryRow.incident_number == number_of(incident_id))
    document = session.execute(wanted).scalar_one_or_none()
    return from_json_form(RunSummary, document) if document else None


def keep_good(
    session: Session, job_name: str, cluster: str, job_id: str | None, summary: RunSummary, at: datetime
) -> None:
    """Stores the summary of a successful run. Nodes of one job that report separately are one run with all their hosts.
    Deletes all but the latest few of this job, and all but the latest _KEPT of all jobs."""
    row = RunSummaryRow
    own = (row.incident_number.is_(None), row.job_name == job_name, row.cluster == cluster)
    newest = select(row).where(*own).order_by(row.at.desc(), row.number.desc())
    kept = session.execute(newest.limit(1)).scalar_one_or_none()
    if kept is not None and job_id is not None and kept.job_id == job_id:
        before = from_json_form(RunSummary, kept.document)
        hosts = list(dict.fromkeys((*before.hosts, *summary.hosts)))
        kept.document, kept.at = {**fields_form(summary), "hosts": hosts}, at
        return
    session.add(row(job_name=job_name, cluster=cluster, job_id=job_id, at=at, document=fields_form(summary)))
    session.flush()
    session.execute(delete(row).where(row.number.in_(select(newest.offset(_KEPT_OF_A_JOB).subquery().c.number))))
    oldest = select(row.number).where(row.incident_number.is_(None)).order_by(row.at.desc(), row.number.desc())
    session.execute(delete(row).where(row.number.in_(select(oldest.offset(_KEPT).subquery().c.number))))


def good_before(session: Session, job_name: str, cluster: str, moment: datetime) -> GoodRun | None:
    """Returns the newest successful run of this job name and cluster that was received before a time, or None."""
    row = RunSummaryRow
    own = (row.incident_number.is_(None), row.job_name == job_name, row.cluster == cluster, row.at < moment)
    newest = select(row.at, row.document).where(*own).order_by(row.at.desc(), row.number.desc()).limit(1)
    found = session.execute(newest).one_or_none()
    return GoodRun(found.at, from_json_form(RunSummary, found.document)) if found else None
