"""Reads Slurm's records of a job: sacct as a table, with separators or as JSON, and `scontrol show job`, also as
JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.whole_files import NotRead

_SEPARATED = lazy_regex(r"\w+([|,;])\w")
_STEP = lazy_regex(r"\d+(?:_\d+|\+\d+)?\.")  # 4711.batch, 4711.0: steps, which only repeat the end of the job
_ENDED = lazy_regex(r"(?:^|\s)EndTime=(\d{4}-\d\d-\d\dT[\d:]{8})")
_DASHES = lazy_regex(r" *-{2,}(?: +-{2,})* *$")
_DASH = lazy_regex(r"-+")
_UNKNOWN = ("", "Unknown", "None")
_MAX_OPENED = 500_000  # lists and objects in JSON


def lines(text: str) -> Iterator[ReportLine]:
    """Yields `sacct: JobID=4711 State=TIMEOUT ExitCode=0:0 …` for each job of a table or of JSON, and scontrol's lines
    unchanged. Steps are left out: Slurm ends them for the reason in the job's own row. Raises NotRead if the JSON is
    invalid."""
    first = text.lstrip().split("\n", 1)[0]
    if first.startswith("{"):
        yield from _of_json(text)
    elif first.startswith("JobId="):
        ended = _ENDED.search(text)
        yield from (
            ReportLine(at, line.strip(), time=ended and ended[1]) for at, line in enumerate(text.split("\n"), 1)
        )
    elif separator := _SEPARATED.match(first):
        yield from _job_statements((at, line.split(separator[1])) for at, line in enumerate(text.split("\n"), 1))
    else:
        yield from _job_statements(_columns(text))


def _columns(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the cells of a table. The dashes below its header give the widths of the columns."""
    rows = text.split("\n")
    dashes = next((line for line in rows if _DASHES.match(line)), "")
    places = [hit.span() for hit in _DASH.finditer(dashes)]
    for number, line in enumerate(rows, 1):
        if line is not dashes:
            yield number, [line[start:end] for start, end in places]


def _job_statements(rows: Iterable[tuple[int, list[str]]]) -> Iterator[ReportLine]:
    """Yields the statements about jobs in the rows after the first, which has the column names."""
    names: list[str] = []
    for number, cells in rows:
        if not names:
            names = [cell.strip() for cell in cells] if any(map(str.strip, cells)) else []
            continue
        fields = {name: cell.strip() for name, cell in zip(names, cells, strict=False) if name}
        job = fields.get("JobID") or fields.get("JobIDRaw") or ""
        if job and not _STEP.match(job):
            end = fields.get("End")
            statement = " ".join(f"{name}={value}" for name, value in fields.items() if value not in _UNKNOWN)
            yield ReportLine(number, f"sacct: {statement}"[:1000], time=None if end in _UNKNOWN else end)


def _of_json(text: str) -> Iterator[ReportLine]:
    if text.count("[") + text.count("{") > _MAX_OPENED:
        raise NotRead(f"more than {_MAX_OPENED:,} lists")
    try:
        jobs = json.loads(text).get("jobs")
    except (ValueError, RecursionError) as error:
        raise NotRead("incomplete JSON") from error
    at = 0
    for job in jobs if isinstance(jobs, list) else ():
        if not isinstance(job, dict):
            continue
        number = _number(job.get("job_id"))
        at = max(at, text.find(f'"job_id": {number}', at))
        fields = {
            "JobID": str(number), "JobName": str(job.get("name") or "")[:200], "State": _state(job),
            "Reason": _reason(job), "ExitCode": _exit_code(job.get("exit_code")),
            "NodeList": str(job.get("nodes") or "")[:200],
        }  # fmt: skip
        ended = _number(_mapping(job.get("time")).get("end") or job.get("end_time"))
        statement = " ".join(f"{name}={value}" for name, value in fields.items() if value not in _UNKNOWN)
        time = datetime.fromtimestamp(ended, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if 0 < ended < 1 << 33 else None
        yield ReportLine(text.count("\n", 0, at) + 1, f"sacct: {statement}"[:1000], time=time)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(field: Any) -> int:
    """Returns a number. Newer versions wrap it: `{"set": true, "infinite": false, "number": 9}`."""
    value = field.get("number") if isinstance(field, dict) else field
    return value if isinstance(value, int) else 0


def _state(job: Mapping[str, Any]) -> str:
    """Returns a state such as `TIMEOUT` from `"job_state": "TIMEOUT"`, `["TIMEOUT"]` or sacct's `"state": {"current":
    …}`."""
    state = job.get("job_state") or _mapping(job.get("state")).get("current") or ""
    return str(state[0] if isinstance(state, list) and state else state)[:60]


def _reason(job: Mapping[str, Any]) -> str:
    return str(job.get("state_reason") or _mapping(job.get("state")).get("reason") or "")[:60]


def _exit_code(status: Any) -> str:
    """Returns status and signal as Slurm's tables show them, such as `0:9`."""
    if not isinstance(status, dict):
        return f"{status >> 8}:{status & 127}" if isinstance(status, int) else ""
    signal = _mapping(status.get("signal"))
    return f"{_number(status.get('return_code'))}:{_number(signal.get('id') or signal.get('signal_id'))}"
