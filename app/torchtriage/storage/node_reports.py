"""Joins the reports of a run's nodes, which are sent separately, in one incident. Each function is one step of the
caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import Table, delete, insert, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.incident import Job, NodeReport, StoredFile, StoredLog
from torchtriage.storage import full_text_search, new_incidents
from torchtriage.storage.database import lock
from torchtriage.storage.new_incidents import MAX_JOB_ID_LENGTH, Received, file_rows, incident_row, job_text
from torchtriage.storage.tables import FileRow, IncidentRow

_NEWEST = 20  # incidents of a job that are checked
# Nodes of one run run at the same time. This is how much later than the end of one node another may have started. It is
# longer if attempts are numbered; otherwise a later start is the next attempt.
_APART, _APART_NUMBERED = timedelta(seconds=5), timedelta(minutes=10)
_MAX_LABEL_LENGTH = 500
_FILES = cast(Table, FileRow.__table__)


def lock_jobs(session: Session, received: Sequence[Received]) -> None:
    """Locks these jobs until the transaction ends. If two nodes report at the same moment, the second must see the
    first one's report."""
    names = {f"job {one.job.cluster} {one.job.job_id}" for one in received if one.job.node_key is not None}
    if names:
        lock(session, *sorted(names))


def add(session: Session, received: Received, within: timedelta) -> tuple[str, bool, bool]:
    """Adds a node's report to the incident of its run if that was received `within` this time, else to a
    new incident. Returns the incident's id, whether to triage it, and whether it existed before. A repeated
    report changes nothing."""
    key = received.job.node_key
    assert key is not None
    own = _report(received.job, received.log)
    rows = _same_job(session, received.job, received.at - within)
    for row in rows:
        known = _known(row).get(key)
        if known and (known.log, known.provisional) == (own.log, own.provisional):
            return str(row.number), False, True
    for row in rows:
        known = _known(row).get(key)
        if _is_same_run(Job(**row.job), received.job) and (known is None or known.provisional):
            _put(session, row, key, received, own)
            return str(row.number), True, True
    ((number, new),) = new_incidents.add(session, [received])
    return number, new, not new


def _same_job(session: Session, job: Job, since: datetime) -> Sequence[Any]:
    """Locks and returns the incidents of runs on several nodes that may be of this job, newest first."""
    row = IncidentRow
    columns = row.number, row.job, row.log_sha256
    same = [row.job_id == (job.job_id or "")[:MAX_JOB_ID_LENGTH], row.attempt.is_not_distinct_from(job.attempt)]
    same += [row.cluster.is_not_distinct_from(job.cluster), row.received_at >= since]
    query = select(*columns).where(*same).order_by(row.number.desc()).limit(_NEWEST).with_for_update()
    return [one for one in session.execute(query) if _is_same_job(Job(**one.job), job)]


def _is_same_job(known: Job, job: Job) -> bool:
    """Returns whether both are of one job and, if both have a step number, of the same step."""
    steps = {one.labels["step"] for one in (known, job) if "step" in one.labels}
    one = (known.job_id, known.user) == (job.job_id, job.user)
    return one and len(steps) < 2 and (bool(known.reports) or known.node_key is not None)


def _is_same_run(known: Job, job: Job) -> bool:
    """Returns whether both ran at the same time, as far as their times are known."""
    apart = _APART if job.attempt is None else _APART_NUMBERED
    return _begins_before(known.started_at, job.ended_at, apart) and _begins_before(
        job.started_at, known.ended_at, apart
    )


def _begins_before(start: str | None, end: str | None, apart: timedelta) -> bool:
    return start is None or end is None or datetime.fromisoformat(start) <= datetime.fromisoformat(end) + apart


def _known(row: Any) -> dict[str, NodeReport]:
    """Returns an incident's reports by node."""
    job = Job(**row.job)
    if job.reports:
        return job.reports
    return {job.node_key or "": NodeReport(row.log_sha256, job.host_label, 0, job.provisional)}


def _report(job: Job, log: StoredLog) -> NodeReport:
    return NodeReport(log.sha256, job.host_label, 0, job.provisional)


def _put(session: Session, row: Any, key: str, received: Received, own: NodeReport) -> None:
    """Adds a node's files to an incident, or replaces those of the node's provisional report. The incident then waits
    for a new verdict. Until then it stays in its group and in the counts."""
    files: dict[str, list[StoredFile]] = {}
    known = _known(row)
    left = _files_of(session, row.number)
    for node, report in known.items():
        count = report.files or len(left)
        files[node], left = left[:count], left[count:]
    files[key] = list(received.log.files)
    reports = known | {key: own}
    reports = {node: replace(report, files=len(files[node])) for node, report in reports.items()}
    log = new_incidents.log_of(_with_own_names(files))
    job = _joined(Job(**row.job), received.job, reports, is_new=key not in known)
    new = incident_row(Received(job, log, received.at))
    del new["received_at"], new["request"]
    none = dict.fromkeys(("next_try", "triaged_at", "failure", "verdict"))
    session.execute(update(IncidentRow).where(IncidentRow.number == row.number).values(new | none))
    session.execute(delete(FileRow).where(FileRow.incident_number == row.number))
    session.execute(insert(_FILES), file_rows(row.number, log))
    full_text_search.replace(session, {row.number: job_text(job)})


def _files_of(session: Session, number: int) -> list[StoredFile]:
    columns = FileRow.name, FileRow.sha256, FileRow.bytes, FileRow.lines
    query = select(*columns).where(FileRow.incident_number == number).order_by(FileRow.position)
    return [StoredFile(*file) for file in session.execute(query)]


def _with_own_names(files: dict[str, list[StoredFile]]) -> list[StoredFile]:
    """Returns the files of all nodes. If two have the same name, the later one is prefixed with its node."""
    found: dict[str, StoredFile] = {}
    for node, those in files.items():
        for file in those:
            name = file.name
            while name in found:
                name = f"node-{node}/{name}"
            found[name] = replace(file, name=name)
    return list(found.values())


def _joined(known: Job, job: Job, reports: dict[str, NodeReport], is_new: bool) -> Job:
    """Returns the job of the whole run: the values of its first report; times, GPUs and labels from all reports."""
    labels = dict(known.labels)
    for name, value in job.labels.items():
        values = labels.get(name, "").split(",") if name in labels else []
        if value not in values:
            labels[name] = ",".join([*values, value])[:_MAX_LABEL_LENGTH]
    has_ended = any(report.provisional is False for report in reports.values())
    is_open = all(report.provisional for report in reports.values())
    given = {name: value for name, value in ((name, getattr(job, name)) for name in _FILLED) if value is not None}
    missing = {name: value for name, value in given.items() if getattr(known, name) is None}
    more = (job.gpus or 0) if is_new else 0
    return replace(
        known,
        **missing,
        exit_code=known.exit_code or job.exit_code,
        started_at=min(filter(None, (known.started_at, job.started_at)), default=None),
        ended_at=max(filter(None, (known.ended_at, job.ended_at)), default=None),
        gpus=known.gpus + more if known.gpus is not None else job.gpus,
        node_rank=None,
        nodes=max(known.nodes or 0, job.nodes or 0),
        provisional=True if is_open else False if has_ended else None,
        labels=labels,
        reports=reports,
    )


_FILLED = ("job_name", "scheduler", "queue", "state", "image", "commit", "url")
