"""Summaries of runs: stores what clients report, and returns what changed since a job last worked."""

from __future__ import annotations

from datetime import UTC, datetime

from torchtriage.answer.changes_since_success import KnownRun, changes_since_success
from torchtriage.domain.incident import Incident
from torchtriage.domain.run_summary import RunSummary, SinceGood
from torchtriage.errors import BadInput
from torchtriage.reading.redaction.redact import redacted
from torchtriage.services.compare_runs import job_words, last_good
from torchtriage.services.decisions import grade_by_good_end
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service
from torchtriage.storage import run_summaries

MAX_CHANGES = 3  # maximum changes shown


def keep_good_run(
    service: Service, job_name: str, cluster: str | None, job_id: str | None, summary: RunSummary
) -> None:
    """Stores the summary of a successful run, without known kinds of secrets. Grades the decisions about earlier
    attempts of its job."""
    now = datetime.now(UTC)
    with service.database.transaction() as session:
        run_summaries.keep_good(session, job_name, cluster or "", job_id, _clean(summary), now)
        if job_id is not None:
            grade_by_good_end(session, job_id, cluster, now)


def keep_failed_run(service: Service, incident_id: str, job_id: str | None, summary: RunSummary) -> Incident:
    """Stores the summary of an incident's run, and returns the incident. Raises NotFound, and BadInput if the incident
    is of another job."""
    incident = read_incident(service, incident_id)
    if incident.job.job_id != job_id:
        raise BadInput("the incident is of another job")
    with service.database.transaction() as session:
        name = incident.job.job_name or ""
        run_summaries.keep_of_incident(session, incident.id, name, _clean(summary), datetime.now(UTC))
    return incident


def since_good(service: Service, incident: Incident) -> SinceGood | None:
    """Returns what changed since the last successful run with the same job name: one whose client said so, or whose log
    shows no failure. None if there is no such run or no known difference."""
    name = incident.job.job_name
    if name is None or (incident.verdict is not None and incident.verdict.outcome == "healthy"):
        return None
    with service.database.reading() as session:
        good_run = run_summaries.good_before(session, name, incident.job.cluster or "", incident.received_at)
        own = run_summaries.of_incident(session, incident.id)
    stored_id = last_good(service, incident)
    stored = read_incident(service, stored_id) if stored_id else None
    if stored is not None and (good_run is None or stored.received_at > good_run.at):
        with service.database.reading() as session:
            summary = run_summaries.of_incident(session, stored.id)
        at, good = stored.received_at, KnownRun(job_words(stored.job), stored.verdict, summary)
    elif good_run is not None:
        stored, at, good = None, good_run.at, KnownRun(good_run.summary.job, None, good_run.summary)
    else:
        return None
    now = KnownRun(job_words(incident.job), incident.verdict, own)
    changes = changes_since_success(good, now, service.knowledge.vocabulary, MAX_CHANGES)
    return SinceGood(at, stored.id if stored else None, changes) if changes else None


def _clean(summary: RunSummary) -> RunSummary:
    """Returns the summary without known kinds of secrets. They are recognized by the text before them, as in a log."""
    job, versions, environment = (_clean_pairs(pairs) for pairs in (summary.job, summary.versions, summary.environment))
    hosts, lines = _clean_lines(summary.hosts), _clean_lines(summary.lines)
    return RunSummary(job, versions, environment, hosts, summary.phases, lines)


def _clean_pairs(pairs: dict[str, str]) -> dict[str, str]:
    clean = _clean_lines(tuple(f"{name}={value}" for name, value in pairs.items()))
    return dict(line.split("=", 1) for line in clean if "=" in line)


def _clean_lines(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the same texts, in order, without known kinds of secrets."""
    block = "".join(text.replace("\n", " ").replace("\r", " ").replace("\0", "") + "\n" for text in texts)
    return tuple(b"".join(redacted([block.encode("utf-8", "replace")])).decode().split("\n")[:-1])
