"""Compares two stored incidents, and returns what changed from the earlier run to the later one."""

from __future__ import annotations

from itertools import chain

from torchtriage.answer.run_comparison import ComparedRun, compared, run_lines
from torchtriage.domain.incident import Incident, IncidentFilter, Job, StoredFile
from torchtriage.domain.line import Line
from torchtriage.domain.run_comparison import RunComparison
from torchtriage.errors import NotTriaged
from torchtriage.reading.prefixes.paths import FileOrigin, FileOrigins
from torchtriage.reading.reread_lines import tail_lines
from torchtriage.services.incidents import list_summaries, read_incident
from torchtriage.services.service import Service

_HEAD, _TAIL = 4000, 1000  # lines read at the start and the end of a file
_MAX_FILES = 16
_MAX_SEARCHED = 50  # maximum healthy runs that are searched for one with the same job name
_OWN = frozenset({"job_id", "started_at", "ended_at", "url", "attempt", "exit_code", "state", "node_rank", "reports"})


def compare_runs(service: Service, before_id: str, now_id: str) -> tuple[Incident, Incident, RunComparison]:
    """Returns both incidents and what changed. Raises NotFound, NotTriaged, DamagedLog and StorageUnavailable."""
    before, now = read_incident(service, before_id), read_incident(service, now_id)
    return before, now, compared(_run(service, before), _run(service, now))


def last_good(service: Service, incident: Incident) -> str | None:
    """Returns the id of the newest earlier run with the same job name whose log shows no failure. None if there is no
    such run, or if the incident has no job name."""
    name = incident.job.job_name
    if name is None:
        return None
    wanted = IncidentFilter(outcome="healthy", q=name, cluster=incident.job.cluster, until=incident.received_at)
    listed = list_summaries(service, wanted, limit=_MAX_SEARCHED).items
    return next((one.id for one in listed if one.job.job_name == name and one.id != incident.id), None)


def job_words(job: Job) -> dict[str, str]:
    """Returns the job's values that another run of it can share: all but its own times, ids and labels."""
    return {name: str(value) for name, value in job.to_json().items() if name not in _OWN | {"labels"}}


def _run(service: Service, incident: Incident) -> ComparedRun:
    if incident.verdict is None:
        raise NotTriaged("the incident has no verdict", state=incident.state)
    job = job_words(incident.job)
    lines, partly = _lines(service, incident)
    return ComparedRun(run_lines(lines, service.knowledge.vocabulary, partly), incident.verdict, job)


def _lines(service: Service, incident: Incident) -> tuple[list[Line], bool]:
    files = incident.log.files
    origins = FileOrigins(file.name for file in files)
    read = (_ends(service, file, origins.of(file.name, len(files) > 1)) for file in files[:_MAX_FILES])
    partly = len(files) > _MAX_FILES or any(file.lines > _HEAD + _TAIL for file in files)
    return list(chain.from_iterable(read)), partly


def _ends(service: Service, file: StoredFile, origin: FileOrigin) -> list[Line]:
    """Returns the first and the last lines of a file. Raises NotFound, DamagedLog and StorageUnavailable."""
    spans = [(1, _HEAD + _TAIL)] if file.lines <= _HEAD + _TAIL else [(1, _HEAD), (file.lines - _TAIL + 1, _TAIL)]
    found: list[Line] = []
    for first, count in spans:
        texts = [line.text.encode("utf-8", "replace") for line in service.blobs.lines(file.sha256, first, count)]
        found += tail_lines(first, b"\n".join(texts) + b"\n", origin)
    return found
