"""Reads torchelastic's output: the agent's lines about ended workers, and the report (a table) that it prints when it
gives up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from signal import Signals
from typing import ClassVar

from torchtriage.domain.event import Event, EventSource, Raised, Where
from torchtriage.domain.host import host_name
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.extractor import Extractor, FeedResult, taken

# E1120 15:09:16.037000 1001 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: …
_FAILED = lazy_regex(r"failed \(exitcode: (-?[1-9]\d{0,9})\) .{0,400}?\blocal_rank: (\d{1,6})\b")
_AGENT_PID = lazy_regex(r"[WEI]\d{4} [\d:.]+ (\d+) torch/distributed/elastic")
_FIRST = lazy_regex(r"^Root Cause(?: \(first observed failure\))?:")
_OTHERS = lazy_regex(r"^(?:Other )?Failures:")
_INITIALS = ("R", "O", "F")  # of the lines above
_ITEM = lazy_regex(r"^\[\d+\]:\s*$")
# An item that a log viewer joined into one line.
_IN_ONE = lazy_regex(r"^\[\d+\]: +time +: ?\S+ +host +: ?\S+ +rank +: ")
_FIELDS_IN_ONE = lazy_regex(
    r"(time|host|rank|exitcode|error_file) +: ?(.*?)(?= +(?:host|rank|exitcode|error_file|traceback) +: |$)"
)
_FIELD = lazy_regex(r"^\s*(time|host|rank|exitcode|error_file|traceback|msg)\s*: ?(.*)")
_RULE = lazy_regex(r"^(?:={10,}|\*{10,})\s*$")
# torch 1.9:       "message": "ValueError: no such split",
_MESSAGE = lazy_regex(r'^\s+"message": "([A-Za-z_][\w.]*): ((?:[^"\\]|\\.)*)"')
_FILLING = lazy_regex(r"^\s*(?:$|<NO_OTHER_FAILURES>|-{10,}\s*$|\s{2})")
_RANK = lazy_regex(r"(\d{1,6}) \(local_rank: (\d{1,6})\)")
_CODE = lazy_regex(r"(-?[1-9]\d{0,9}) \(pid: (\d+)\)")


@dataclass(slots=True)
class _Report:
    """A report that is being read: the fields of its last item, and the events of the items before it."""

    first: bool = False
    fields: dict[str, tuple[str, Line]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def rank(self) -> int | None:
        """Returns the rank of the item that is being read."""
        found = _RANK.match(self.fields["rank"][0]) if "rank" in self.fields else None
        return int(found[1]) if found else None


def exit_text(code: int, rank: int | None) -> str:
    """Returns how a process ended in the form that signs search: `exitcode -9 SIGKILL rank 3`."""
    try:
        name = f" {Signals(-code).name}" if code < 0 else f" {Signals(code - 128).name}" if 128 < code < 160 else ""
    except ValueError:
        name = ""
    return f"exitcode {code}{name}" + (f" rank {rank}" if rank is not None else "")


class TorchElastic(Extractor):
    """Reports one event for each worker that an agent's line or a report names. `attempt` counts the attempts that
    ended, `given_up` counts the reports."""

    name: ClassVar = "torchelastic"
    words: ClassVar = ("failed (exitcode", "Root Cause", "Failures:", " (local_rank: ")
    sources: ClassVar = frozenset(
        {EventSource.ELASTIC_AGENT, EventSource.FIRST_FAILURE, EventSource.OTHER_FAILURE, EventSource.EXCEPTION_LINE}
    )
    anchors: ClassVar = (r"failed \(exitcode",)
    wide_anchors: ClassVar = (r"\bRoot Cause( \(first observed failure\))?:", r"\bFailures:$")

    def __init__(self) -> None:
        self._reports: dict[str, _Report] = {}
        self._ended: dict[str, int] = {}  # attempts of each agent
        self._ended_at: dict[tuple[str | None, str | None], int] = {}  # the same by file and host
        self._finished: list[Event] = []
        self.attempt = 0
        self.given_up = 0

    def feed(self, line: Line, above: str = "") -> FeedResult:
        return taken(self._read(line), self._finished)

    def _read(self, line: Line) -> bool:
        text = line.text
        report = self._reports.get(line.stream)
        if report is not None:
            return self._in_report(report, line)
        if text[:1] in _INITIALS and (_FIRST.match(text) or _OTHERS.match(text)):
            self._reports[line.stream] = _Report(first=bool(_FIRST.match(text)))
            return True
        if " (local_rank: " in text and (item := _FIELD.match(text)) and item[1] == "rank":
            self._reports[line.stream] = _Report(fields={"rank": (item[2].strip(), line)})  # What was above is cut off.
            return True
        if "failed (exitcode" in text and (found := _FAILED.search(text)):
            self._agent(line, int(found[1]), int(found[2]))
            return True
        return False

    def continues(self, stream: str) -> bool:
        return stream in self._reports

    def with_attempt(self, line: Line) -> Line:
        """Returns the line with its attempt. If it belongs to a worker's traceback inside a report, it gets this
        worker's rank too."""
        report = self._reports.get(line.stream)
        if report is None and (line.attempt or not self.attempt):
            return line  # true for nearly all lines
        attempt = line.attempt or ((self._ended_before(line) or 0) if report is None else self._last(line))
        rank = report.rank() if report is not None and line.rank is None else line.rank
        return line if (attempt, rank) == (line.attempt, line.rank) else line._replace(attempt=attempt, rank=rank)

    def close(self) -> tuple[Event, ...]:
        """Returns the events of reports that are cut off at the end of the log."""
        for stream, report in list(self._reports.items()):
            self._end(stream, report)
        return taken(False, self._finished).events

    def _agent(self, line: Line, code: int, local_rank: int) -> None:
        pid = _AGENT_PID.search(line.text)
        agent = f"{line.stream}{pid[1] if pid else ''}"
        attempt = line.attempt or self._ended.get(agent, 0)
        self._ended[agent] = attempt + 1
        self.attempt = max(self.attempt, attempt + 1)
        place = line.file, line.host
        self._ended_at[place] = max(self._ended_at.get(place, 0), attempt + 1)
        text = exit_text(code, None)
        host, time = line.host, line.time
        event = Event(
            Where.EXIT, text, (line,), EventSource.ELASTIC_AGENT, None, local_rank, host, attempt, time, exit_code=code
        )
        self._finished.append(event)

    def _in_report(self, report: _Report, line: Line) -> bool:
        text = line.text
        if _FIRST.match(text) or _OTHERS.match(text):
            self._item(report)
            report.first = bool(_FIRST.match(text))
        elif _ITEM.match(text):
            self._item(report)
        elif _IN_ONE.match(text):
            self._item(report)
            report.fields |= {name: (value.strip(), line) for name, value in _FIELDS_IN_ONE.findall(text)}
        elif found := _FIELD.match(text):
            report.fields[found[1]] = (found[2].strip(), line)
        elif "msg" in report.fields and (message := _MESSAGE.match(text)):
            report.events.append(self._from_error_file(line, report.rank(), message[1], message[2]))
        elif "traceback" in report.fields and text.startswith("  "):
            return False  # The report contains the worker's own traceback; the traceback extractor reads it.
        elif _RULE.match(text) or not _FILLING.match(text):
            self._end(line.stream, report)
            return bool(_RULE.match(text))
        return True

    def _from_error_file(self, line: Line, rank: int | None, kind: str, message: str) -> Event:
        """Returns the exception that a worker wrote to its error file. torch 1.9 prints it as JSON."""
        text = message.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
        raised = Raised(kind, text.encode(errors="replace").decode(), (), (line,))
        event = Event.at(line, raised.text, EventSource.EXCEPTION_LINE, Where.EXCEPTION)
        return replace(event, rank=rank, attempt=self._last(line), chain=(raised,))

    def last_at(self, line: Line) -> int | None:
        """Returns the last attempt that an agent ended in this line's file and host, or None."""
        ended = self._ended_before(line)
        return None if ended is None else ended - 1

    def _ended_before(self, line: Line) -> int | None:
        """Returns how many attempts the agents ended in the line's file on its host, or None if there are none. Each
        host has its own agent, as far as the lines name a host."""
        own = self._ended_at.get((line.file, line.host)) or self._ended_at.get((line.file, None))
        if own is None and line.host is None:
            return max((ended for (file, _), ended in self._ended_at.items() if file == line.file), default=None)
        return own

    def _last(self, line: Line) -> int:
        """Returns the attempt that a report's line is about."""
        ended = self._ended_before(line)
        return max(self.attempt - 1, 0) if ended is None else ended - 1

    def _end(self, stream: str, report: _Report) -> None:
        self._item(report)
        self._finished += report.events
        self.given_up += any(event.source is EventSource.FIRST_FAILURE for event in report.events)
        del self._reports[stream]

    def _item(self, report: _Report) -> None:
        fields, report.fields = report.fields, {}
        code = _CODE.match(fields["exitcode"][0]) if "exitcode" in fields else None
        if code is None:
            return
        rank = _RANK.match(fields["rank"][0]) if "rank" in fields else None
        number = int(rank[1]) if rank else None
        order = ("exitcode", "traceback", "rank", "host", "time", "msg")
        lines = tuple(fields[name][1] for name in order if name in fields)
        report.events.append(
            Event(
                where=Where.EXIT,
                text=exit_text(int(code[1]), number),
                lines=lines,
                source=EventSource.FIRST_FAILURE if report.first else EventSource.OTHER_FAILURE,
                rank=number,
                local_rank=int(rank[2]) if rank else None,
                host=host_name(fields["host"][0]) if "host" in fields else lines[0].host,
                attempt=self._last(lines[0]),
                time=fields["time"][0].replace("_", "T") if "time" in fields else None,
                exit_code=int(code[1]),
            )
        )
