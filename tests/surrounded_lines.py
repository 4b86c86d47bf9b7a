"""Text that people, editors and other tools put around each line of a log. See log_wrappings."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence

from tests.log_wrappings import Wrapped, Wrapping, as_records, by_line, millis, stamp, when


def _cut_at(width: int, mark: str = "") -> Wrapping:
    """Returns a wrapping that cuts lines as a terminal does, with a mark before each piece."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        written: list[str] = []
        numbers: list[int] = []
        for line in lines:
            numbers.append(len(written) + 1)
            written += [mark + line[at : at + width] for at in range(0, len(line), width)] or [mark]
        return ("\n".join(written) + "\n").encode(), numbers

    return wrap


def _clock(at: int, form: str) -> str:
    return when(at).strftime(form)


def _entries(entry: Callable[[int, str], str], place: int) -> Wrapping:
    """Returns a wrapping whose entries have several lines; `place` is the line of the message in an entry."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        every = [entry(at, line) for at, line in enumerate(lines)]
        height = every[0].count("\n")
        return "".join(every).encode(), [at * height + place for at in range(len(lines))]

    return wrap


SURROUNDED: dict[str, Wrapping] = {
    "a quotation": by_line(lambda at, line: f"> {line}".rstrip()),
    "a quotation in a quotation": by_line(lambda at, line: f"> > {line}"),
    "an indented block": by_line(lambda at, line: f"    {line}"),
    "a list": by_line(lambda at, line: f"- {line}"),
    "a diff": by_line(lambda at, line: f"+{line}"),
    "backticks": by_line(lambda at, line: f"`{line}`"),
    "a table of Markdown": by_line(lambda at, line: f"| {_clock(at, '%H:%M:%S')} | {line} |"),
    "cat -n": by_line(lambda at, line: f"{at + 1:6}\t{line}"),
    "less -N": by_line(lambda at, line: f"{at + 1:7} {line}"),
    "bat": by_line(lambda at, line: f"{at + 1:4} │ {line}"),
    "grep -n": by_line(lambda at, line: f"{at + 1}:{line}"),
    "cat -n, quoted": by_line(lambda at, line: f"> {at + 1:6}\t{line}"),
    "HTML": by_line(lambda at, line: html.escape(line)),
    "HTML, a tag a line": by_line(lambda at, line: f'<div class="line"><span>{html.escape(line)}</span></div>'),
    "typeset quotes": by_line(lambda at, line: re.sub(r'"([^"]*)"', "“\\1”", line)),
    "lines doubled": lambda lines: ("".join(f"{line}\n\n" for line in lines).encode(), [*range(1, 2 * len(lines), 2)]),
    "cut at 80": _cut_at(80),
    "cut at 120": _cut_at(120),
    "cut at 100, quoted": _cut_at(100, "> "),
    "hours alone": by_line(lambda at, line: f"{_clock(at, '%H:%M:%S')} {line}"),
    "hours in brackets": by_line(lambda at, line: f"[{_clock(at, '%H:%M:%S')}] {line}"),
    "a day first": by_line(lambda at, line: f"{_clock(at, '%d.%m.%Y %H:%M:%S')} {line}"),
    "an American date": by_line(lambda at, line: f"{_clock(at, '%m/%d/%Y %I:%M:%S %p')} {line}"),
    "TeamCity": by_line(lambda at, line: f"[{_clock(at, '%H:%M:%S')}]W:\t [Step 1/2] {line}"),
    "Airflow": by_line(lambda at, line: f"[{_clock(at, '%Y-%m-%dT%H:%M:%S')}.123+0000] {{subprocess.py:93}} INFO - {line}"),
    "Prefect": by_line(lambda at, line: f"{_clock(at, '%H:%M:%S')}.123 | INFO    | Task run 'train-0' - {line}"),
    "Spark": by_line(lambda at, line: f"{_clock(at, '%y/%m/%d %H:%M:%S')} INFO TrainRunner: {line}"),
    "a Go program": by_line(lambda at, line: f"I0501 {_clock(at, '%H:%M:%S.%f')}       1 train.go:31] {line}"),
    "keys and values": by_line(lambda at, line: f'time="{stamp(at)}" level=info msg={json.dumps(line)}'),
    "keys and values behind a pod": by_line(
        lambda at, line: f"train-x7k2p-123: ts={stamp(at)} level=error msg={json.dumps(line)} caller=run.go:31"
    ),
    "Buildkite": by_line(lambda at, line: f"\x1b_bk;t={millis(at)}\x07{line}"),
    "foreman": by_line(lambda at, line: f"{_clock(at, '%H:%M:%S')} train.1 | {line}"),
    "Fluentd's output": by_line(
        lambda at, line: f"{_clock(at, '%Y-%m-%d %H:%M:%S')}.000000000 +0000 kube.train: {json.dumps({'log': line})}"
    ),
    "OpenTelemetry": as_records(lambda at, line: {"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": [
        {"logRecords": [{"timeUnixNano": f"{millis(at)}000000", "body": {"stringValue": line}}]}]}]}),
    "Loki's push interface": as_records(
        lambda at, line: {"streams": [{"stream": {"app": "train"}, "values": [[f"{millis(at)}000000", line]]}]}
    ),
    "Azure": as_records(lambda at, line: {"TimeGenerated": stamp(at), "LogEntry": line, "PodName": "train-worker-0"}),
    "journalctl -o export": _entries(
        lambda at, line: f"__CURSOR=s=1;i={at}\n__REALTIME_TIMESTAMP={millis(at)}000\n_HOSTNAME=gpu-7\n_PID=41\nMESSAGE={line}\n\n", 5
    ),
    "journalctl -o verbose": _entries(
        lambda at, line: f"{_clock(at, '%a %Y-%m-%d %H:%M:%S.%f')} UTC [s=1;i={at};b=2]\n    _HOSTNAME=gpu-7\n    _PID=41\n    MESSAGE={line}\n", 4
    ),
    "journalctl -o json-pretty": _entries(
        lambda at, line: json.dumps({"__REALTIME_TIMESTAMP": f"{millis(at)}000", "_PID": "41", "MESSAGE": line}, indent="\t") + "\n", 4
    ),
    "Graylog": as_records(lambda at, line: {"version": "1.1", "host": "gpu-7", "short_message": line, "timestamp": 1777626000.5 + at}),
    "a table with semicolons": lambda lines: (
        ("Timestamp;Message\r\n" + "".join(f'"{stamp(at)}";"{line.replace(chr(34), chr(34) * 2)}"\r\n' for at, line in enumerate(lines))).encode(),
        [*range(2, len(lines) + 2)],
    ),
}  # fmt: skip
