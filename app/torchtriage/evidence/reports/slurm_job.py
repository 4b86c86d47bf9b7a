"""Slurm's records of a job: sacct as table or with separators, `scontrol show job`."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex

_SEPARATED = lazy_regex(r"\w+([|,;])\w")
_STEP = lazy_regex(r"\d+(?:_\d+|\+\d+)?\.")  # 4711.batch, 4711.0: what became of the job, and no more
_ENDED = lazy_regex(r"(?:^|\s)EndTime=(\d{4}-\d\d-\d\dT[\d:]{8})")
_UNKNOWN = ("", "Unknown", "None")


def lines(text: str) -> Iterator[ReportLine]:
    """-> `sacct: JobID=4711 State=TIMEOUT ExitCode=0:0 …` for each job of a table that has separators; else the rows of
    jobs and the lines of scontrol as they are. Steps are left out: Slurm ends them for what the job's own row tells."""
    first = text.lstrip().split("\n", 1)[0]
    if first.startswith("JobId="):
        ended = _ENDED.search(text)
        yield from (
            ReportLine(at, line.strip(), time=ended and ended[1]) for at, line in enumerate(text.split("\n"), 1)
        )
    elif separator := _SEPARATED.match(first):
        yield from _separated(text, separator[1])
    else:
        rows = ((at, line) for at, line in enumerate(text.split("\n"), 1))
        yield from (ReportLine(at, line.rstrip()) for at, line in rows if not _STEP.match(line.lstrip()))


def _separated(text: str, separator: str) -> Iterator[ReportLine]:
    names: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        cells = line.rstrip().split(separator)
        if not names:
            names = [cell.strip() for cell in cells] if line.strip() else []
            continue
        told = {name: cell.strip() for name, cell in zip(names, cells, strict=False) if name}
        job = told.get("JobID") or told.get("JobIDRaw") or ""
        if job and not _STEP.match(job):
            end = told.get("End")
            said = " ".join(f"{name}={value}" for name, value in told.items() if value not in _UNKNOWN)
            yield ReportLine(number, f"sacct: {said}"[:1000], time=None if end in _UNKNOWN else end)
