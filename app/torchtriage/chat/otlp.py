"""Incidents as log records for an OpenTelemetry Collector, or what takes OTLP/HTTP: one record an incident, in JSON."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import torchtriage
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.chat.sanitize import plain
from torchtriage.chat.wording import word
from torchtriage.domain.notice import Notice, NoticeKind, Thread

log = logging.getLogger(__name__)
SERVICE = "torchtriage"
INCIDENT = "torchtriage.incident"  # the attribute by which a record of ours is known
# The specification: these may be sent again, and no other answer.
_PASSING = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_INFO, _WARN, _ERROR = (9, "INFO"), (13, "WARN"), (17, "ERROR")
_BODY, _VALUE = 2000, 300  # characters


class OtlpEndpoint:
    """`url` is what `/v1/logs` and `/v1/metrics` follow; `headers` go with each request."""

    def __init__(self, outgoing: Outgoing, url: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self._outgoing = outgoing
        self._url = url.rstrip("/")
        own = {name: value for name, value in headers if name.lower() != "content-type"}
        self._headers = own | {"Content-Type": "application/json"}

    def post(self, signal: str, request: dict[str, Any], rejected: str) -> tuple[int, str]:
        """`signal` is `logs` or `metrics`, `rejected` the name of the count in a partial success -> that count, and
        why; what was rejected must not be sent again. Raises Undelivered."""
        answer = self._outgoing.post_json(f"{self._url}/v1/{signal}", request, self._headers)
        said = answer.json()
        refuse(answer, "the OTLP endpoint", str(said.get("message") or ""), _PASSING)
        partial = said.get("partialSuccess")
        partial = partial if isinstance(partial, dict) else {}
        try:
            count = int(partial.get(rejected) or 0)
        except (TypeError, ValueError):
            count = 0
        return count, plain(partial.get("errorMessage") or "", _VALUE)


class OtlpLogs:
    """Tells of every incident, whatever is known of its group. One that is sent again has the same `log.record.uid`."""

    pace = 0.0
    hears = frozenset({NoticeKind.INCIDENT})

    def __init__(self, endpoint: OtlpEndpoint) -> None:
        self._endpoint = endpoint

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        """Raises Undelivered, for good where the endpoint rejects the record in a partial success."""
        scope = {"scope": {"name": SERVICE, "version": torchtriage.__version__}, "logRecords": [_record(notice, key)]}
        request = {"resourceLogs": [{"resource": resource(), "scopeLogs": [scope]}]}
        rejected, why = self._endpoint.post("logs", request, "rejectedLogRecords")
        if rejected:
            raise Undelivered(f"the OTLP endpoint rejected the log record: {why or 'it does not say why'}")
        if why:
            log.warning("the OTLP endpoint took a log record and says: %s", why)


def resource(instance: str | None = None) -> dict[str, Any]:
    """-> the resource of what this service sends; `instance` tells this process from others."""
    known = {
        "service.name": SERVICE,
        "service.version": torchtriage.__version__,
        "service.instance.id": instance,
    }
    return {"attributes": attributes(known)}


def attributes(values: Mapping[str, str | int | None]) -> list[dict[str, Any]]:
    """-> those that are known, as OTLP writes them: whole numbers as strings of digits."""
    return [
        {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for name, value in values.items()
        if value is not None
    ]


def _record(notice: Notice, key: str) -> dict[str, Any]:
    number, text = _severity(notice)
    at = str(_nanoseconds(notice))
    test = notice.kind is NoticeKind.TEST
    said = word(notice.lang, "tested") if test else (notice.screen.what if notice.screen else "") or notice.title
    return {
        "timeUnixNano": at,
        "observedTimeUnixNano": at,
        "severityNumber": number,
        "severityText": text,
        "eventName": "torchtriage.test" if test else INCIDENT,
        "body": {"stringValue": plain(said, _BODY)},
        "attributes": attributes(_told(notice, key)),
    }


def _severity(notice: Notice) -> tuple[int, str]:
    """-> its number and name: a run that has not ended yet is a warning."""
    if notice.kind is NoticeKind.TEST:
        return _INFO
    return _WARN if _verdict(notice).get("provisional") else _ERROR


def _told(notice: Notice, key: str) -> dict[str, str | int | None]:
    """-> the attributes; texts of the log are in one line, without secrets."""
    verdict, screen = _verdict(notice), notice.screen
    root: dict[str, Any] = verdict.get("root_cause") or {}
    answer: dict[str, Any] = verdict.get("answer") or {}
    rank = root.get("rank")
    texts = {
        INCIDENT: notice.incident,
        "torchtriage.group": notice.group,
        "torchtriage.outcome": notice.outcome,
        "torchtriage.entry": notice.entry,
        "torchtriage.case": answer.get("case"),
        "torchtriage.host": root.get("host"),
        "torchtriage.retry": screen.retry if screen else None,
        "torchtriage.confidence": root.get("confidence"),
        "torchtriage.job.id": notice.job_id,
        "torchtriage.job.name": notice.job_name,
        "torchtriage.user": notice.user,
        "torchtriage.cluster": notice.cluster,
        "torchtriage.url": notice.url,
    }
    told: dict[str, str | int | None] = {name: plain(value, _VALUE) for name, value in texts.items() if value}
    told["torchtriage.rank"] = rank if isinstance(rank, int) else None
    told["log.record.uid"] = str(uuid5(NAMESPACE_URL, f"{notice.url}#{key}"))
    return told


def _verdict(notice: Notice) -> dict[str, Any]:
    incident: dict[str, Any] = notice.document.get("incident") or {}
    return incident.get("verdict") or {}


def _nanoseconds(notice: Notice) -> int:
    """-> when the incident was received, since 1970; now where there is none."""
    received = (notice.document.get("incident") or {}).get("received_at")
    if not isinstance(received, str):
        return time.time_ns()
    return round(datetime.fromisoformat(received).timestamp() * 1000) * 10**6
