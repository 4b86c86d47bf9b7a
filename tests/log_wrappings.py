"""The forms in which logs arrive. A wrapping takes the lines of a log and returns the bytes of a file and each line's
number in it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

Wrapped = tuple[bytes, list[int]]
Wrapping = Callable[[Sequence[str]], Wrapped]
_START = datetime(2026, 5, 1, 9, tzinfo=UTC)


def when(at: int) -> datetime:
    return _START + timedelta(milliseconds=250 * at)


def stamp(at: int) -> str:
    return when(at).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


def millis(at: int) -> int:
    return int(when(at).timestamp() * 1000)


def by_line(form: Callable[[int, str], str], end: str = "\n") -> Wrapping:
    """Returns a wrapping that writes one line for each line."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        return "".join(form(at, line) + end for at, line in enumerate(lines)).encode(), list(range(1, len(lines) + 1))

    return wrap


def as_records(form: Callable[[int, str], Any]) -> Wrapping:
    """Returns a wrapping that writes one JSON object per line."""
    return by_line(lambda at, line: json.dumps(form(at, line)))


def recoded(encoding: str, mark: bytes = b"") -> Wrapping:
    def wrap(lines: Sequence[str]) -> Wrapped:
        return mark + "".join(f"{line}\n" for line in lines).encode(encoding), list(range(1, len(lines) + 1))

    return wrap


def document(form: Callable[[list[Any]], Any], record: Callable[[int, str], Any], indent: int | None = 4) -> Wrapping:
    """Returns a wrapping that writes one JSON document. If indented, each message has its own line."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        text = json.dumps(form([record(at, line) for at, line in enumerate(lines)]), indent=indent)
        written = text.split("\n")
        numbers, place = [], 0
        for line in lines:
            spelled = json.dumps(line)
            place = next(at for at in range(place, len(written)) if spelled in written[at]) if indent else 0
            numbers.append(place + 1)
            place += bool(indent)
        return text.encode(), numbers

    return wrap


def table(header: Sequence[str], row: Callable[[int, str], Sequence[str]]) -> Wrapping:
    def wrap(lines: Sequence[str]) -> Wrapped:
        made = io.StringIO()
        writer = csv.writer(made, quoting=csv.QUOTE_ALL)
        writer.writerow(header)
        writer.writerows(row(at, line) for at, line in enumerate(lines))
        return made.getvalue().encode(), list(range(2, len(lines) + 2))

    return wrap


def newest_first(wrapping: Wrapping) -> Wrapping:
    """Returns the wrapping with the last line first; each line keeps its time."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        content, numbers = wrapping([f"{at:06d}\x1f{line}" for at, line in enumerate(lines)][::-1])
        return content, numbers[::-1]

    return wrap


def cri_in_pieces(lines: Sequence[str]) -> Wrapped:
    written: list[str] = []
    numbers: list[int] = []
    for at, line in enumerate(lines):
        numbers.append(len(written) + 1)
        pieces = [line[place : place + 40] for place in range(0, len(line), 40)] or [""]
        written += [f"{stamp(at)} stderr {'P' if piece is not pieces[-1] else 'F'} {piece}" for piece in pieces]
    return ("\n".join(written) + "\n").encode(), numbers


def _cloud_logging(at: int, line: str) -> dict[str, Any]:
    labels = {"pod_name": "train-worker-0", "namespace_name": "ml"}
    return {"insertId": f"{at}", "textPayload": line, "timestamp": stamp(at), "severity": "ERROR",
            "resource": {"type": "k8s_container", "labels": labels}}  # fmt: skip


def _event(at: int, line: str) -> dict[str, Any]:
    return {"logStreamName": "train/default/7f0e", "timestamp": millis(at), "message": line, "eventId": f"{at}"}


WRAPPINGS: dict[str, Wrapping] = {
    "as it is": by_line(lambda at, line: line),
    "UTF-16, little end first": recoded("utf-16-le", b"\xff\xfe"),
    "UTF-16, big end first": recoded("utf-16-be", b"\xfe\xff"),
    "UTF-16 without a mark": recoded("utf-16-le"),
    "UTF-16 without a mark, big end first": recoded("utf-16-be"),
    "UTF-8 with a mark": recoded("utf-8-sig"),
    "Windows line ends": by_line(lambda at, line: line, "\r\n"),
    "a terminal's line ends": by_line(lambda at, line: line, "\r\r\n"),
    "nul bytes between": by_line(lambda at, line: line + "\0" * (at % 3)),
    "colours": by_line(lambda at, line: f"\x1b[31m{line}\x1b[0m"),
    "a progress bar before it": by_line(lambda at, line: f" 45%|████▌     | 45/100 [00:01<00:02, 30.1it/s]\r\x1b[K{line}"),
    "nohup": lambda lines: (
        b"nohup: ignoring input\n" + "".join(f"{line}\n" for line in lines).encode(),
        list(range(2, len(lines) + 2)),
    ),
    "script": lambda lines: (
        b'Script started on 2026-05-01 09:00:00+00:00 [TERM="xterm"]\n'
        + "".join(f"{line}\r\n" for line in lines).encode()
        + b'\nScript done on 2026-05-01 09:10:00+00:00 [COMMAND_EXIT_CODE="1"]\n',
        list(range(2, len(lines) + 2)),
    ),
    "docker": as_records(lambda at, line: {"log": line + "\n", "stream": "stderr", "time": stamp(at)}),
    "CRI": by_line(lambda at, line: f"{stamp(at)} stderr F {line}"),
    "CRI, in pieces": cri_in_pieces,
    "kubectl --prefix": by_line(lambda at, line: f"[pod/train-worker-0/pytorch] {line}"),
    "kubectl --prefix --timestamps": by_line(lambda at, line: f"[pod/train-worker-0/pytorch] {stamp(at)} {line}"),
    "stern": by_line(lambda at, line: f"train-worker-0 pytorch {line}"),
    "docker compose": by_line(lambda at, line: f"trainer-1  | {line}"),
    "pdsh": by_line(lambda at, line: f"gpu-7: {line}"),
    "journalctl": by_line(lambda at, line: f"May  1 09:00:00 gpu-7 torchrun[41]: {line}"),
    "journalctl -o short-iso": by_line(lambda at, line: f"2026-05-01T09:00:00+0000 gpu-7 torchrun[41]: {line}"),
    "journalctl -o json": as_records(
        lambda at, line: {"MESSAGE": line, "_HOSTNAME": "gpu-7", "_PID": "41", "__REALTIME_TIMESTAMP": f"{millis(at)}000"}
    ),
    "journalctl -o json, with bytes": as_records(
        lambda at, line: {"MESSAGE": list(f"\x1b[1m{line}".encode()), "_HOSTNAME": "gpu-7", "__REALTIME_TIMESTAMP": "1"}
    ),
    "GitHub": by_line(lambda at, line: f"{stamp(at)} {line}"),
    "logcli": by_line(lambda at, line: f'{stamp(at)} {{pod="train-worker-0"}} {line}'),
    "logcli -o jsonl": as_records(
        lambda at, line: {"labels": {"pod": "train-worker-0"}, "line": line, "timestamp": stamp(at)}
    ),
    "Loki": document(
        lambda pairs: {"status": "success", "data": {"resultType": "streams", "result": [
            {"stream": {"pod": "train-worker-0"}, "values": pairs}]}},
        lambda at, line: [f"{millis(at)}000000", line],
    ),
    "aws logs filter-log-events": document(lambda events: {"events": events, "searchedLogStreams": []}, _event),
    "aws logs filter-log-events, one line": document(lambda events: {"events": events}, _event, None),
    "aws logs tail": by_line(lambda at, line: f"2026-05-01T09:00:00.{at % 1000:03d}000+00:00 train/default/7f0e {line}"),
    "CloudWatch Insights": document(
        lambda rows: {"results": rows, "status": "Complete"},
        lambda at, line: [{"field": "@timestamp", "value": f"2026-05-01 09:00:{at % 60:02d}.000"},
                          {"field": "@message", "value": line}],
    ),
    "Cloud Logging, a record a line": as_records(_cloud_logging),
    "Cloud Logging, an array": document(lambda records: records, _cloud_logging, 2),
    "Cloud Logging, jsonPayload": as_records(
        lambda at, line: {"jsonPayload": {"message": line}, "timestamp": stamp(at), "severity": "INFO"}
    ),
    "Fluent Bit": as_records(
        lambda at, line: {"date": 1777626000.5 + at, "log": line, "kubernetes": {"pod_name": "train-worker-0", "host": "gpu-7"}}
    ),
    "Fluentd, nothing but the line": as_records(lambda at, line: {"log": line + "\n"}),
    "Vector": as_records(
        lambda at, line: {"message": line, "host": "gpu-7", "source_type": "file", "timestamp": stamp(at)}
    ),
    "a structured logger": as_records(lambda at, line: {"event": line, "level": "info", "timestamp": stamp(at)}),
    "python-json-logger": as_records(lambda at, line: {"message": line, "levelname": "INFO", "asctime": "2026-05-01 09:00:00,000"}),
    "docker around a structured logger": as_records(
        lambda at, line: {"log": json.dumps({"event": line, "level": "info"}) + "\n", "stream": "stdout", "time": stamp(at)}
    ),
    "kubectl --prefix around a structured logger": by_line(
        lambda at, line: f"[pod/train-worker-0/pytorch] {json.dumps({'event': line, 'level': 'info'})}"
    ),
    "Elasticsearch": document(
        lambda hits: {"took": 3, "hits": {"total": {"value": len(hits)}, "hits": hits}},
        lambda at, line: {"_id": f"{at}", "_source": {"@timestamp": stamp(at), "message": line, "host": {"name": "gpu-7"}}},
    ),
    "Grafana, a table": table(["Time", "Line", "tsNs"], lambda at, line: [f"{millis(at)}", line, f"{millis(at)}000000"]),
    "Datadog, a table": table(["Date", "Host", "Service", "Message"], lambda at, line: [stamp(at), "gpu-7", "train", line]),
    "Splunk": as_records(lambda at, line: {"preview": False, "result": {"_raw": line, "_time": stamp(at), "host": "gpu-7"}}),
}  # fmt: skip


def _at(line: str) -> tuple[int, str]:
    number, _, text = line.partition("\x1f")
    return int(number), text


NEWEST_FIRST: dict[str, Wrapping] = {
    name: newest_first(wrapping)
    for name, wrapping in {
        "Grafana, text": by_line(lambda _, line: f"{stamp(_at(line)[0])}\t{_at(line)[1]}"),
        "logcli -o jsonl": as_records(
            lambda _, line: {"labels": {"pod": "a-0"}, "line": _at(line)[1], "timestamp": stamp(_at(line)[0])}
        ),
        "docker": as_records(
            lambda _, line: {"log": _at(line)[1] + "\n", "stream": "stderr", "time": stamp(_at(line)[0])}
        ),
        "Grafana, a table": table(
            ["Time", "Line", "tsNs"], lambda _, line: [f"{millis(_at(line)[0])}", _at(line)[1], f"{millis(_at(line)[0])}000000"]
        ),
        "Datadog, a table": table(
            ["Date", "Host", "Message"], lambda _, line: [stamp(_at(line)[0]), "gpu-7", _at(line)[1]]
        ),
    }.items()
}  # fmt: skip
