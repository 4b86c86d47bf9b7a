"""Sends incidents as log records to an OpenTelemetry Collector or another OTLP/HTTP endpoint: one JSON record per
incident."""

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
INCIDENT = "torchtriage.incident"  # the attribute that identifies our records
# According to the OTLP specification, only requests with these answers may be sent again.
_PASSING = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_INFO, _WARN, _ERROR = (9, "INFO"), (13, "WARN"), (17, "ERROR")
_BODY, _VALUE = 2000, 300  # maximum characters


class OtlpEndpoint:
    """An endpoint. `/v1/logs` or `/v1/metrics` is appended to `url`. `headers` are sent with each request."""

    def __init__(self, outgoing: Outgoing, url: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self._outgoing = outgoing
        self._url = url.rstrip("/")
        own = {name: value for name, value in headers if name.lower() != "content-type"}
        self._headers = own | {"Content-Type": "application/json"}

    def post(self, signal: str, request: dict[str, Any], rejected: str) -> tuple[int, str]:
        """Sends `logs` or `metrics`. `rejected` is the name of the count in a partial success. Returns that count and
        the reason; rejected records must not be sent again. Raises Undelivered."""
        answer = self._outgoing.post_json(f"{self._url}/v1/{signal}", request, self._headers)
        content = answer.json()
        refuse(answer, "the OTLP endpoint", str(content.get("message") or ""), _PASSING)
        partial = content.get("partialSuccess")
        partial = partial if isinstance(partial, dict) else {}
        try:
            count = int(partial.get(rejected) or 0)
        except (TypeError, ValueError):
            count = 0
        return count, plain(partial.get("errorMessage") or "", _VALUE)


class OtlpLogs:
    """Sends every incident as a log record. A record that is sent again has the same `log.record.uid`."""

    pace = 0.0
    extra_notices = frozenset({NoticeKind.INCIDENT})

    def __init__(self, endpoint: OtlpEndpoint) -> None:
        self._endpoint = endpoint

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        """Raises Undelivered, permanently if the endpoint rejects the record in a partial success."""
        scope = {"scope": {"name": SERVICE, "version": torchtriage.__version__}, "logRecords": [_record(notice, key)]}
        request = {"resourceLogs": [{"resource": resource(), "scopeLogs": [scope]}]}
        rejected, why = self._endpoint.post("logs", request, "rejectedLogRecords")
        if rejected:
            raise Undelivered(f"the OTLP endpoint rejected the log record: {why or 'it does not say why'}")
        if why:
            log.warning("the OTLP endpoint accepted a log record with the message: %s", why)


def resource(instance: str | None = None) -> dict[str, Any]:
    """Returns the resource of this service's records. `instance` identifies this process."""
    known = {
        "service.name": SERVICE,
        "service.version": torchtriage.__version__,
        "service.instance.id": instance,
    }
    return {"attributes": attributes(known)}


def attributes(values: Mapping[str, str | int | None]) -> list[dict[str, Any]]:
    """Returns the known values as OTLP attributes. OTLP writes integers as strings."""
    return [
        {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for name, value in values.items()
        if value is not None
    ]


def _record(notice: Notice, key: str) -> dict[str, Any]:
    number, text = _severity(notice)
    at = str(_nanoseconds(notice))
    test = notice.kind is NoticeKind.TEST
    body = word(notice.lang, "tested") if test else (notice.screen.what if notice.screen else "") or notice.title
    return {
        "timeUnixNano": at,
        "observedTimeUnixNano": at,
        "severityNumber": number,
        "severityText": text,
        "eventName": "torchtriage.test" if test else INCIDENT,
        "body": {"stringValue": plain(body, _BODY)},
        "attributes": attributes(_attributes(notice, key)),
    }


def _severity(notice: Notice) -> tuple[int, str]:
    """Returns the number and name of the severity. A provisional verdict is a warning."""
    if notice.kind is NoticeKind.TEST:
        return _INFO
    return _WARN if _verdict(notice).get("provisional") else _ERROR


def _attributes(notice: Notice, key: str) -> dict[str, str | int | None]:
    """Returns the attributes. Text from the log is one line, without secrets."""
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
    attributes: dict[str, str | int | None] = {name: plain(value, _VALUE) for name, value in texts.items() if value}
    attributes["torchtriage.rank"] = rank if isinstance(rank, int) else None
    attributes["log.record.uid"] = str(uuid5(NAMESPACE_URL, f"{notice.url}#{key}"))
    return attributes


def _verdict(notice: Notice) -> dict[str, Any]:
    incident: dict[str, Any] = notice.document.get("incident") or {}
    return incident.get("verdict") or {}


def _nanoseconds(notice: Notice) -> int:
    """Returns when the incident was received, in nanoseconds since 1970. Returns the current time if there is no
    incident."""
    received = (notice.document.get("incident") or {}).get("received_at")
    if not isinstance(received, str):
        return time.time_ns()
    return round(datetime.fromisoformat(received).timestamp() * 1000) * 10**6
