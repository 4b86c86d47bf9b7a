"""Summaries of runs in the database. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.domain.run_summary import GoodRun, RunSummary
from torchtriage.storage.database import insert
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import IncidentRow, RunSummaryRow

_KEPT_OF_A_JOB = 3  # good runs, so that an incident that arrives late finds one from before it
_KEPT = 5000  # good runs of all jobs


def keep_of_incident(session: Session, incident_id: str, job_name: str, summary: RunSummary, at: datetime) -> None:
    """Keeps the summary of an incident's run, if that is still there, instead of an earlier one."""
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
    """Keeps the summary of a run that worked. Nodes of one job that tell of themselves are one run with all their
    hosts. Older ones than the latest few of this job, and than the latest of all jobs, go."""
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
    """-> the newest run of this job name and cluster that worked and was received before a moment."""
    row = RunSummaryRow
    own = (row.incident_number.is_(None), row.job_name == job_name, row.cluster == cluster, row.at < moment)
    newest = select(row.at, row.document).where(*own).order_by(row.at.desc(), row.number.desc()).limit(1)
    found = session.execute(newest).one_or_none()
    return GoodRun(found.at, from_json_form(RunSummary, found.document)) if found else None
