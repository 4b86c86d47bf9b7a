"""Reads records: JSON objects, and Go's keys and values (`time="…" level=info msg="…"`), in which log drivers,
collectors, exports and structured loggers wrap lines. Returns the lines in a record and the values of its other
fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.times import iso, iso_time

# Names of fields, the most likely first. Nested objects are searched level by level.
_LOG_LINES = (
    "log",
    "line",
    "textPayload",
    "MESSAGE",
    "_raw",
    "_msg",
    "@message",
    "Message",
    "Content",
    "content",
    "Line",
)
_MESSAGES = ("message", "msg", "event", "text", "body", "out")  # programs also use these for their own data
_EXCEPTIONS = ("py_callstack", "exc_info", "exception", "exc_text", "stack_trace", "traceback", "stacktrace", "error")
_TIMES = ("@timestamp", "timestamp", "time", "_time", "ts", "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP",
          "asctime", "datetime", "date", "Date", "Time", "Timestamp", "receiveTimestamp", "tsNs")  # fmt: skip
_HOSTS = (
    "pod_node_name",
    "node_name",
    "nodename",
    "hostname",
    "_HOSTNAME",
    "kubernetes_host",
    "kubernetes_node_name",
    "k8s.node.name",
    "kubernetes.node.name",
    "kubernetes.host",
    "node",
    "host",
    "Host",
    "instance",
    "compute.googleapis.com/resource_name",
)
_PODS = (
    "pod_name",
    "pod",
    "PodName",
    "kubernetes_pod_name",
    "k8s.pod.name",
    "kubernetes.pod.name",
    "kubernetes.pod_name",
    "logStreamName",
    "ec2_instance_id",
)
_NAMED = ("node", "pod", "host")  # objects with a name, as in Elastic's schema
_LEVELS = ("level", "levelname", "severity", "log_level", "loglevel", "detected_level")
_RANKS, _LOCALS = ("global_rank", "rank", "RANK"), ("local_rank", "LOCAL_RANK")
_WRITERS = ("stream", "container_name", "container", "pid", "process", "_PID", "SYSLOG_PID")
_STREAMS = frozenset({"stdout", "stderr"})  # a field of any name can say which of these a line was written to
_COMPANIONS = frozenset(
    (*_TIMES, *_LEVELS, *_EXCEPTIONS, *_WRITERS, *_PODS, "labels", "logger", "logger_name", "stream")
)
# Other names of the same fields: LogEntry, LogMessage, short_message, stringValue, __CONTENT__.
_MESSAGE_NAME = lazy_regex(
    r"(?:.*[a-z\d_.])?(?:[Mm]essage|[Mm]sg|Entry|[Ll]ine|[Cc]ontent|Text|Body|StringValue|stringValue)|data|__CONTENT__|body_text|raw(?:Log)?"
)
_CONTEXT_NAME = lazy_regex(
    r"(?i).*(?:time|date|host|node|pod|computer|severity|level|stream|container|namespace|filename).*"
)
_NAMES_HOST = lazy_regex(r"(?i)(?:.*[_.:@-])?_*(?:node_?name|host_?name|computer)_*")
_NAMES_POD = lazy_regex(r"(?i)(?:.*[_.:@-])?_*pod_?name_*")
_FACT = (str, int, float)
_MAX_DEPTH = 4  # nested levels
_MAX_FIELDS = 400
_LINES = 4000  # lines of one record
WHOLE_LOG = 40  # line feeds in a text that is a log itself, whose lines have their own times
_DOCKER_PIECE = 16_000  # bytes; docker cuts lines at 16 KiB, perhaps inside a character
_DATED = lazy_regex(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d")
_DIGITS = lazy_regex(r"\d{9,19}(?:\.\d+)?")
# The progress of training, which loggers write as fields next to a message without it.
_MEASURED = lazy_regex(
    r"(?i)(?:global_|train(?:er|ing)?[_/]|current_|total_|max_)?(?:steps?|iter(?:ation)?s?|epochs?|loss|lr|learning_rate|grad_norm)"
    r"|(?:eval|val|valid|validation|test)[_/]loss|[dg]_loss|loss_[dg]"
)
_MAX_MEASURED = 8  # fields of a record
_MAX_DOCUMENT_DEPTH = 8  # nested levels
_BATCH = lazy_regex(r'\{\s?"(?:resourceLogs|streams)":\s?\[')
LOGFMT = 'msg="'  # in every line of keys and values that has a message
_PAIR = lazy_regex(r'([A-Za-z_@][\w.@/-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?:\s+|$)')
_MAX_PAIRS = 64  # a line with more pairs is something else


class Record(NamedTuple):
    """The content of a record: the lines that a writer printed, and the values of its other fields.

    `message` is the original text. `whole` is False if a log driver cut a long line and the next record continues it.
    """

    lines: tuple[str, ...]
    message: str = ""
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pod: str | None = None
    time: str | None = None
    writer: str = ""
    whole: bool = True


def record_of(text: str) -> Record | None:
    """Returns the record in a line, or None if it is something else, such as a program's own JSON data."""
    data = decoded_object(text)
    return record_in(data) if data else None


def decoded_object(text: str) -> dict[str, Any]:
    """Returns the JSON object in a text, or an empty one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def record_in(data: dict[str, Any]) -> Record | None:
    """Returns the record in a decoded JSON object, or None."""
    fields = _flat(data)
    name = next((name for name in _LOG_LINES if isinstance(fields.get(name), str)), None)
    if name is None and not _COMPANIONS.isdisjoint(fields):
        name = next((name for name in fields if name in _MESSAGES and isinstance(fields[name], str)), None)
    traceback = _traceback_in(fields)
    if name is None and not traceback:
        name = _message_field(fields)
        if name is None:
            return None
    message = str(fields[name]) if name else ""
    host = _text(fields, _HOSTS) or _named(fields, _NAMES_HOST)
    pod = _text(fields, _PODS) or _named(fields, _NAMES_POD)
    time = next((fields[name] for name in _TIMES if name in fields), None)
    return Record(
        lines=tuple(_lines(message, traceback, fields)),
        message=message,
        rank=_number(fields, _RANKS),
        local_rank=_number(fields, _LOCALS),
        host=None if host in ("localhost", "127.0.0.1", "-") else host,
        pod=pod,
        time=_time(time) if message.count("\n") < WHOLE_LOG else None,
        writer="/".join(str(fields[name]) for name in _WRITERS if name in fields),
        whole=name != "log" or message.endswith("\n") or len(message.encode()) < _DOCKER_PIECE,
    )


def records_in(data: Any, depth: int = 0) -> Iterator[tuple[dict[str, Any], Record | None]]:
    """Yields (object, record or None) for the records in a decoded document, whatever they are wrapped in."""
    if isinstance(data, dict):
        if isinstance(data.get("stream"), dict) and isinstance(data.get("values"), list):  # the API of Loki
            pairs = (value for value in data["values"] if isinstance(value, list) and len(value) > 1)
            entries = ({"timestamp": time, "line": line, "labels": data["stream"]} for time, line, *_ in pairs)
            yield from ((each, record_in(each)) for each in entries)
            return
        inside = [value for value in data.values() if isinstance(value, list | dict) and value]
        if (record := record_in(data)) and not any(_holds_records(value) for value in inside):
            yield data, record
            return
    elif not isinstance(data, list):
        return
    elif data and all(isinstance(each, dict) and {"field", "value"} <= each.keys() for each in data):
        fields = {str(each["field"]).lstrip("@"): each["value"] for each in data}  # CloudWatch Logs Insights
        yield fields, record_in(fields)
        return
    else:
        inside = [value for value in data if isinstance(value, list | dict)]
    if depth < _MAX_DOCUMENT_DEPTH:
        for value in inside:
            yield from records_in(value, depth + 1)


def _holds_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and record_in(value[0]) is not None


def batch_records(text: str) -> list[Record]:
    """Returns the records of one line that a collector sent as a batch (OpenTelemetry, Loki's push API). Empty for
    other lines."""
    data = decoded_object(text) if _BATCH.match(text) else {}
    return [record for _, record in records_in(data) if record] if data else []


def logfmt_fields(text: str) -> dict[str, str]:
    """Returns the fields of a line that consists only of keys and values, in order. Empty for other lines."""
    fields: dict[str, str] = {}
    at = 0
    while at < len(text) and len(fields) < _MAX_PAIRS:
        pair = _PAIR.match(text, at)
        if pair is None:
            return {}
        fields[pair[1]] = _unquoted_value(pair[2])
        at = pair.end()
    return fields if at >= len(text) else {}


def _unquoted_value(value: str) -> str:
    """Returns a value without quotes. Go escapes like JSON, except for control characters."""
    if value[:1] != '"':
        return value
    try:
        return str(json.loads(value, strict=False))
    except ValueError:
        return value[1:-1]


def is_message_field(name: str) -> bool:
    """Returns whether a field name is one of those used for messages."""
    return bool(_MESSAGE_NAME.fullmatch(name)) and not is_context_field(name)


def is_context_field(name: str) -> bool:
    """Returns whether a field name is one of those used for time, origin or level."""
    return bool(_CONTEXT_NAME.fullmatch(name))


def _message_field(fields: dict[str, str | int | float]) -> str | None:
    """Returns the name of the field with the message. Requires another field with time, origin or stream."""
    named = (name for name in fields if isinstance(fields[name], str) and is_message_field(name))
    name = next(named, None)
    beside = any(map(is_context_field, fields)) or not _STREAMS.isdisjoint(map(str, fields.values()))
    return name if name and beside else None


def _named(fields: dict[str, str | int | float], form: re.Pattern[str]) -> str | None:
    """Returns the first text in a field whose name matches, or None."""
    return next(
        (value for name, value in fields.items() if isinstance(value, str) and value and form.fullmatch(name)), None
    )


def _flat(data: dict[str, Any]) -> dict[str, str | int | float]:
    """Returns the scalar fields of an object and its nested objects. Of equal names, the outermost counts."""
    fields: dict[str, str | int | float] = {}
    level: list[dict[str, Any]] = [data]
    for _ in range(_MAX_DEPTH):
        below: list[dict[str, Any]] = []
        for each in level:
            for name, value in islice(each.items(), _MAX_FIELDS):
                if isinstance(value, dict):
                    below.append(value)
                    value = value.get("name") if name in _NAMED else None
                elif isinstance(value, list):
                    value = _listed(name, value)
                if isinstance(value, _FACT) and not isinstance(value, bool):
                    fields.setdefault(name, _without_surrogates(value) if isinstance(value, str) else value)
        level = below[:_MAX_FIELDS]
    return fields


def _listed(name: str, values: list[Any]) -> str | None:
    """Returns the text in a list: the bytes of a journal entry that is not plain text, or structlog's exceptions."""
    if name == "MESSAGE" and all(isinstance(value, int) and 0 <= value < 256 for value in values):
        return bytes(values).decode("utf-8", "replace")
    if name == "exception" and values and all(isinstance(value, dict) and "exc_type" in value for value in values):
        return "\n".join(line for value in reversed(values) for line in _exception_lines(value))
    return None


def _exception_lines(exception: dict[str, Any]) -> list[str]:
    """Returns one exception of structlog's `dict_tracebacks`, as Python prints it."""
    lines = ["Traceback (most recent call last):"]
    for frame in exception.get("frames") or []:
        if isinstance(frame, dict):
            lines.append(f'  File "{frame.get("filename")}", line {frame.get("lineno") or 0}, in {frame.get("name")}')
            lines += [f"    {frame['line']}"] if frame.get("line") else []
    return [*lines, f"{exception.get('exc_type')}: {exception.get('exc_value')}"]


def _traceback_in(fields: dict[str, str | int | float]) -> str:
    """Returns the traceback in a separate field, or an empty text."""
    for name in _EXCEPTIONS:
        value = fields.get(name)
        if isinstance(value, str) and "Traceback (most recent" in value:
            return value
    return ""


def _lines(message: str, traceback: str, fields: dict[str, str | int | float]) -> list[str]:
    """Returns the lines of a record. If it has a traceback, the message gets its level as prefix, as in plain text."""
    message = message.rstrip("\r\n")
    if traceback and ("py_callstack" in fields or traceback.strip() in message):
        message, traceback = (message, "") if traceback.strip() in message else ("", traceback)
    level = _text(fields, _LEVELS) or ""
    if traceback and message and level.isalpha():
        message = f"{level.upper()}: {message}"
    of_message = message.split("\n") if message or not traceback else []
    if len(of_message) == 1 and not traceback:
        of_message = [", ".join([*of_message, *_progress_fields(fields, message)])]
    lines = [*of_message, *(traceback.rstrip("\n").split("\n") if traceback else [])]
    if "py_callstack" in fields and isinstance(fields.get("errorCode"), int):  # torchrun's copy of an error
        lines = [f"exit code {fields['errorCode']}", *lines]
    return [line.rstrip("\r") for line in lines[:_LINES]]


def _progress_fields(fields: dict[str, str | int | float], message: str) -> list[str]:
    """Returns the fields with the progress of training, such as `step=3`. Empty if the message itself names one of
    them."""
    numbers = [
        (name, value) for name, value in fields.items() if _MEASURED.fullmatch(name) and not isinstance(value, str)
    ]
    if any(f"{name}={value}" in message or f'"{name}"' in message for name, value in numbers):
        return []
    return [f"{name}={value}" for name, value in numbers[:_MAX_MEASURED]]


def _time(value: str | int | float | None) -> str | None:
    """Returns a time as ISO 8601. A number is seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        return iso(value[:40]) if _DATED.match(value) else None
    number = float(value or 0) if isinstance(value, str) or abs(value or 0) < 1e20 else 0.0
    while number > 1e11:
        number /= 1000
    return iso_time(number) if number > 1e8 else None


def _text(fields: dict[str, str | int | float], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), None)


def _number(fields: dict[str, str | int | float], names: tuple[str, ...]) -> int | None:
    found = next((str(fields[name]) for name in names if name in fields), "")
    return int(found) if found.isdecimal() and len(found) < 7 else None


def _without_surrogates(text: str) -> str:
    """Returns the text without lone surrogates, which JSON can contain and UTF-8 cannot."""
    return text if text.isascii() else text.encode(errors="replace").decode()
