"""Decodes OTLP/HTTP requests for logs, in JSON or protobuf, and encodes the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from torchtriage.errors import BadInput
from torchtriage.extras import require
from torchtriage.services.otlp_records import LogRecord, ResourceLogs

JSON, PROTOBUF = "application/json", "application/x-protobuf"


class BadRecords(BadInput):
    """The body is not an OTLP request for logs."""

    code = "bad_records"


def resources(body: bytes, kind: str) -> list[ResourceLogs]:
    """Returns the resources of a request with their records. `kind` is JSON or PROTOBUF. Raises BadRecords or
    MissingExtra."""
    return _of_protobuf(body) if kind == PROTOBUF else _of_json(body)


def success(kind: str, rejected: int, message: str) -> bytes:
    """Returns the body of the answer; empty if all records were accepted."""
    if kind == JSON:
        content = {"partialSuccess": {"rejectedLogRecords": str(rejected), "errorMessage": message}} if rejected else {}
        return json.dumps(content).encode()
    require("otlp", "protobuf")
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

    answer = ExportLogsServiceResponse()
    if rejected:
        answer.partial_success.rejected_log_records = rejected
        answer.partial_success.error_message = message
    return bytes(answer.SerializeToString())


def failure(kind: str, message: str) -> bytes:
    """Returns the body of an error answer: a google.rpc.Status with only its message."""
    if kind == JSON:
        return json.dumps({"message": message}).encode()
    text = message.encode()
    return b"\x12" + _varint(len(text)) + text  # field 2 of google.rpc.Status; no installed library has this message


def _varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _of_protobuf(body: bytes) -> list[ResourceLogs]:
    require("otlp", "protobuf")
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    request = ExportLogsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise BadRecords(f"the body is not an ExportLogsServiceRequest: {error}") from None
    return [ResourceLogs(_pairs(one.resource.attributes), _records(one)) for one in request.resource_logs]


def _records(resource: Any) -> Iterator[LogRecord]:
    for scope in resource.scope_logs:
        for record in scope.log_records:
            yield LogRecord(
                record.time_unix_nano or record.observed_time_unix_nano,
                record.severity_text,
                _text(_value(record.body)),
                _pairs(record.attributes),
            )


def _pairs(attributes: Any) -> dict[str, str]:
    return {pair.key: _text(_value(pair.value)) for pair in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    return getattr(value, kind) if kind else None


def _of_json(body: bytes) -> list[ResourceLogs]:
    try:
        request = json.loads(body)
        return [_json_resource(one) for one in request.get("resourceLogs") or ()]
    except (ValueError, OverflowError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise BadRecords(f"the body is not an ExportLogsServiceRequest in JSON: {error}"[:300]) from None


def _json_resource(one: dict[str, Any]) -> ResourceLogs:
    attributes = _json_pairs((one.get("resource") or {}).get("attributes"))
    found = [record for scope in one.get("scopeLogs") or () for record in scope.get("logRecords") or ()]
    return ResourceLogs(attributes, [_json_record(record) for record in found])


def _json_record(record: dict[str, Any]) -> LogRecord:
    time = int(record.get("timeUnixNano") or 0) or int(record.get("observedTimeUnixNano") or 0)
    body = _text(_json_value(record.get("body") or {}))
    return LogRecord(max(time, 0), str(record.get("severityText") or ""), body, _json_pairs(record.get("attributes")))


def _json_pairs(attributes: Any) -> dict[str, str]:
    return {str(pair["key"]): _text(_json_value(pair.get("value") or {})) for pair in attributes or ()}


def _json_value(value: dict[str, Any]) -> Any:
    """Returns the value of an AnyValue. In JSON, 64-bit integers are strings."""
    if "arrayValue" in value:
        return [_json_value(one) for one in value["arrayValue"].get("values") or ()]
    if "kvlistValue" in value:
        return {
            str(pair["key"]): _json_value(pair.get("value") or {}) for pair in value["kvlistValue"].get("values") or ()
        }
    return int(value["intValue"]) if "intValue" in value else next(iter(value.values()), None)


def _text(value: Any) -> str:
    """Returns a value as text for a log line. Lists and objects become JSON, which the engine reads as a record."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.decode("utf-8", "replace")
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, default=lambda part: part.decode("utf-8", "replace"))
    return str(value)
