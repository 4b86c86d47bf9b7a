"""Sorts OpenTelemetry log records into pieces of jobs' logs, by job and writer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from torchtriage.chat.otlp import INCIDENT
from torchtriage.domain.gathered_log import JobPiece, StreamPiece
from torchtriage.domain.incident import Job
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.lazy_regex import lazy_regex

ATTRIBUTES = "otlp-attributes"  # the vocabulary list with the names of attributes
_MAX_NAME_LENGTH, _MAX_STREAM_LENGTH = 200, 300  # characters
_MAX_STREAMS = 4096  # streams per job and request
_SECOND = 10**9  # nanoseconds
_HOST = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_RANK = ("[rank", "[default")  # a line with such a prefix shows its rank itself
_NEAR = 100  # first characters of a line, in which its level is looked for


class LogRecord(NamedTuple):
    """`time` is in nanoseconds since 1970, or 0 if unknown."""

    time: int
    severity: str
    body: str
    attributes: dict[str, str]


class ResourceLogs(NamedTuple):
    """The records of one resource: a pod, a host, a process."""

    attributes: dict[str, str]
    records: Iterable[LogRecord]


@dataclass(frozen=True, slots=True)
class Sorted:
    """The pieces by job, and the number of rejected records: those that name no job, and those that this
    service sent."""

    pieces: tuple[JobPiece, ...]
    rejected: int


@dataclass(slots=True)
class _Stream:
    began: int
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _JobLog:
    job: Job
    ended: bool = False
    streams: dict[str, _Stream] = field(default_factory=dict)


class _Origin(NamedTuple):
    """The origin of a record. `host` and `rank` are in the form that begins a line."""

    key: str
    job: Job
    stream: str
    host: str
    rank: str
    ended: bool


def sort_records(resources: Iterable[ResourceLogs], vocabulary: Vocabulary) -> Sorted:
    """Returns the records as lines of jobs' logs, each with its time and level, in the order received."""
    names = _Names(vocabulary.groups(ATTRIBUTES))
    jobs: dict[str, _JobLog] = {}
    rejected = 0
    for resource in resources:
        plain = names.origin(resource.attributes)
        for record in resource.records:
            own = names.known.intersection(record.attributes)
            origin = names.origin({**resource.attributes, **record.attributes}) if own else plain
            if origin is None or INCIDENT in record.attributes:  # an incident that we sent must not become another one
                rejected += 1
                continue
            log = jobs.setdefault(origin.key, _JobLog(origin.job))
            if origin.ended:
                log.job, log.ended = origin.job, True
            name = origin.stream if origin.stream in log.streams or len(log.streams) < _MAX_STREAMS else "others"
            stream = log.streams.setdefault(name, _Stream(record.time))
            stream.lines += names.lines(record, origin)
    pieces = (JobPiece(key, log.job, tuple(map(_piece, log.streams.items())), log.ended) for key, log in jobs.items())
    return Sorted(tuple(pieces), rejected)


class _Names:
    """The names of attributes by their meaning."""

    def __init__(self, groups: Mapping[str, tuple[str, ...]]) -> None:
        self._groups = groups
        self.known = frozenset(name for names in groups.values() for name in names)

    def origin(self, attributes: dict[str, str]) -> _Origin | None:
        """Returns the origin of a record, or None if no attribute names a job."""
        job_id, name = self._first(attributes, "job id"), self._first(attributes, "job name")
        service = self._first(attributes, "service")
        if service and service.startswith(self._groups["unnamed"]):
            service = attributes.get(self._groups["service"][-1], "")[:_MAX_NAME_LENGTH] or None
        name = name or (None if job_id else service)
        if not (job_id or name):
            return None
        attempt, code = _number(self._first(attributes, "attempt")), _number(self._first(attributes, "exit code"))
        cluster, namespace = self._first(attributes, "cluster"), self._first(attributes, "namespace")
        ended = code is not None or self._first(attributes, "ended") in ("true", "1")
        job = Job(
            job_id=job_id,
            job_name=name,
            cluster=cluster,
            user=self._first(attributes, "user"),
            queue=self._first(attributes, "queue"),
            attempt=attempt,
            exit_code=code,
            image=self._first(attributes, "image"),
            labels={"namespace": namespace} if namespace else {},
        )
        identity = "\0".join(str(part) for part in (cluster, namespace, job_id or name, attempt))
        key = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()
        host, rank = self._first(attributes, "host") or "", _number(self._first(attributes, "rank"))
        told_host = f"{host}: " if _HOST.fullmatch(host) else ""
        told_rank = f"[rank{rank}]: " if rank is not None else ""
        return _Origin(key, job, self._stream(attributes, rank), told_host, told_rank, ended)

    def lines(self, record: LogRecord, origin: _Origin) -> list[str]:
        """Returns the record as log lines. Each begins with host, time and rank, as lines of pdsh and torchrun do."""
        text = record.body
        if record.severity and record.severity.lower() not in text[:_NEAR].lower():
            text = f"{record.severity} {text}"
        stack = self._stack(record.attributes)
        texts = "\n".join(part.rstrip("\n") for part in (text, stack if stack not in text else "") if part).split("\n")
        rank = "" if text.startswith(_RANK) else origin.rank
        label = f"{origin.host}{_moment(record.time)}{rank}"
        return [f"{label}{line}\n" for line in texts]

    def _stack(self, attributes: dict[str, str]) -> str:
        return next((attributes[name] for name in self._groups["stack"] if attributes.get(name)), "")

    def _stream(self, attributes: dict[str, str], rank: int | None) -> str:
        """Returns the path of the stream's file in the log. The engine reads host, rank and attempt from it, as from
        any path."""
        host = self._first(attributes, "writer")
        path = attributes.get(self._groups["file"][0]) or attributes.get(self._groups["file"][-1]) or ""
        parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if rank is not None:
            parts = [f"rank{rank}.log"]
        named = "/".join([*([host.replace("/", "_")] if host else []), *parts]) or "log"
        clean = "".join(char if char.isprintable() else "_" for char in named)
        return (clean if parts or not host else f"{clean}.log")[-_MAX_STREAM_LENGTH:]

    def _first(self, attributes: dict[str, str], group: str) -> str | None:
        for name in self._groups[group]:
            if value := attributes.get(name, "").strip():
                return "".join(char for char in value[:_MAX_NAME_LENGTH] if char.isprintable()) or None
        return None


def _piece(named: tuple[str, _Stream]) -> StreamPiece:
    name, stream = named
    content = "".join(stream.lines).replace("\0", "").encode("utf-8", "replace")
    return StreamPiece(name, min(stream.began, 2**63 - 1), len(stream.lines), content)


def _moment(nanoseconds: int) -> str:
    """Returns the time in the form that begins a log line; empty if unknown."""
    try:
        at = datetime.fromtimestamp(nanoseconds // _SECOND, UTC) if nanoseconds else None
    except (OverflowError, OSError, ValueError):
        return ""
    return "" if at is None else f"{at:%Y-%m-%dT%H:%M:%S}.{nanoseconds % _SECOND // 1000:06d}Z "


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None
