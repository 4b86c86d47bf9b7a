"""The piece of an incident's log that its page shows: which lines are asked for in, those lines with marks out."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from app.domain.incident import Incident, StoredFile, StoredLine
from app.domain.verdict import Verdict
from app.errors import TriageError
from app.services.incidents import read_log
from app.services.service import Service

_BEFORE = 12  # lines shown above the one that is asked for
_LINES = 120
_CHARACTERS = 24_000  # of a piece, so that long lines do not make the page heavy
_MOST_FILES = 100  # to choose from


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address asks for: a file, and either the piece's first line or a line to show among its neighbours."""

    file: str | None = None
    first: int | None = None
    around: int | None = None


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """A line and what it is to the verdict: `evidence`, `cascade`, or nothing. `focus`: the address asks for it."""

    number: int
    text: str
    cut: bool
    mark: str
    focus: bool


@dataclass(frozen=True, slots=True)
class LogPiece:
    """`first` and `last` are 0 where there is no line; `problem` says why the log can't be read."""

    file: StoredFile
    several: bool
    files: tuple[StoredFile, ...]
    more_files: int
    lines: tuple[MarkedLine, ...] = ()
    problem: str | None = None

    @property
    def first(self) -> int:
        return self.lines[0].number if self.lines else 0

    @property
    def last(self) -> int:
        return self.lines[-1].number if self.lines else 0

    def earlier(self) -> str | None:
        """-> the address of the piece before; None at the file's beginning."""
        return self._address({"from": max(1, self.first - _LINES)}, "log") if self.first > 1 else None

    def later(self) -> str | None:
        """-> the address of the piece after; None at the file's end."""
        more = self.lines and self.last < self.file.lines
        return self._address({"from": self.last + 1}, "log") if more else None

    def beginning(self) -> str:
        return self._address({"from": 1}, "log")

    def end(self) -> str:
        return self._address({"from": max(1, self.file.lines - _LINES + 1)}, "log")

    def line(self, number: int, file: str | None = None) -> str:
        """-> where a line is: on this page, or in another piece or file. `file` is None where the run is one file."""
        here = file is None or file == self.file.name
        if here and self.first <= number <= self.last:
            return f"#L{number}"
        return self._address({"line": number}, f"L{number}", file)

    def _address(self, query: dict[str, int], anchor: str, file: str | None = None) -> str:
        named = {"file": file or self.file.name} if self.several else {}
        return f"?{urlencode(named | query)}#{anchor}"


def log_piece(service: Service, incident: Incident, verdict: Verdict | None, wanted: Wanted) -> LogPiece:
    """-> what is asked for; without that, the surroundings of the first evidence, else the end of the log."""
    stored = incident.log.files
    named = wanted.file if wanted.file is not None else _file_of(verdict)
    file = next((known for known in stored if known.name == named), stored[0])
    first, focus = _place(wanted, verdict, file)
    choice = stored[:_MOST_FILES] if file in stored[:_MOST_FILES] else (file, *stored[: _MOST_FILES - 1])
    frame = LogPiece(file, len(stored) > 1, choice, len(stored) - len(choice))
    try:
        lines = read_log(service, incident, first, _LINES, file.name)[1]
    except TriageError as error:  # the page says more than the log, so it is shown without it
        return LogPiece(frame.file, frame.several, frame.files, frame.more_files, problem=error.message)
    marks = _marks(verdict, file, several=len(stored) > 1)
    asked = wanted.around or 0
    shown = tuple(
        MarkedLine(line.line, line.text, line.cut, marks.get(line.line, ""), line.line == asked)
        for line in _within_weight(lines, focus)
    )
    return LogPiece(frame.file, frame.several, frame.files, frame.more_files, shown)


def _file_of(verdict: Verdict | None) -> str | None:
    root = verdict.root_cause if verdict else None
    return root.evidence[0].file if root and root.evidence else None


def _place(wanted: Wanted, verdict: Verdict | None, file: StoredFile) -> tuple[int, int]:
    """-> (the first line to read, the line that must be among those shown)."""
    if wanted.first is not None:
        first = min(max(wanted.first, 1), max(file.lines, 1))
        return first, first
    root = verdict.root_cause if verdict else None
    shown = [line.line for line in root.evidence if line.file in (None, file.name)] if root else []
    if wanted.around is not None:
        focus = min(max(wanted.around, 1), max(file.lines, 1))
    elif shown:
        focus = shown[0]
    else:
        return max(1, file.lines - _LINES + 1), file.lines
    return max(1, focus - _BEFORE), focus


def _marks(verdict: Verdict | None, file: StoredFile, several: bool) -> dict[int, str]:
    if verdict is None:
        return {}
    # A cascade does not say in which file it is.
    marks = {} if several else {cascade.line: "cascade" for cascade in verdict.cascades}
    root = verdict.root_cause
    evidence = root.evidence if root else ()
    return marks | {line.line: "evidence" for line in evidence if line.file in (None, file.name)}


def _within_weight(lines: list[StoredLine], focus: int) -> list[StoredLine]:
    """-> the lines around `focus` that are together not too long; at least that line itself."""
    middle = next((at for at, line in enumerate(lines) if line.line == focus), 0)
    before: list[StoredLine] = []
    left = _CHARACTERS // 3
    for line in reversed(lines[:middle]):
        left -= len(line.text)
        if left < 0:
            break
        before.insert(0, line)
    left = _CHARACTERS - sum(len(line.text) for line in before)
    after: list[StoredLine] = []
    for line in lines[middle:]:
        left -= len(line.text)
        if left < 0 and after:
            break
        after.append(line)
    return before + after
