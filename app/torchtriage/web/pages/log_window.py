"""Selects the piece of an incident's log that a page shows, with marks on its lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from torchtriage.domain.incident import Incident, StoredFile, StoredLine
from torchtriage.domain.verdict import Verdict
from torchtriage.errors import TriageError
from torchtriage.services.incidents import read_log
from torchtriage.services.log_search import stream, writers
from torchtriage.services.service import Service
from torchtriage.web.pages.log_rows import Row, folded, joined, key_lines, rows, settled, widest_rank

_BEFORE = 12  # lines shown above the one that is asked for
_LINES = 160
_FITS = 60  # lines of a log that a page shows from its beginning to its end
_EXCERPT = 40  # rows of a piece that is no page of its own
_JOINED = 240  # lines of such a piece, what ranks repeat included
_CHARACTERS = 24_000  # of a piece, so that long lines do not make the page heavy
_MAX_FILES = 100  # to choose from


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request in the URL: a file, and the first line of a piece, the line before which it ends, or a line to show
    in its context, with `until` as the end of a range. `rank`: only lines of this rank. `words` are marked, as text or
    as a `regex`. `whole`: repeated lines are not folded. `wrap`: long lines are wrapped."""

    file: str | None = None
    first: int | None = None
    before: int | None = None
    around: int | None = None
    until: int | None = None
    rank: int | None = None
    words: str | None = None
    whole: bool = False
    regex: bool = False
    wrap: bool = True


@dataclass(frozen=True, slots=True)
class LogPiece:
    """`first` and `last` are 0 if there is no line. `before` and `after` are where the neighbouring pieces start, or
    None at the ends of the file. `problem` says why the log cannot be read. `widest_rank` is the number of digits of
    the run's largest rank."""

    incident: str
    wanted: Wanted
    file: StoredFile
    several: bool
    files: tuple[StoredFile, ...]
    more_files: int
    rows: tuple[Row, ...] = ()
    first: int = 0
    last: int = 0
    before: int | None = None
    after: int | None = None
    problem: str | None = None
    widest_rank: int = 1

    @property
    def ranked(self) -> bool:
        """Whether the rank of any line is known."""
        return any(row.rank is not None for row in self.rows)

    @property
    def digits(self) -> str:
        """Returns the CSS class for the width of the column with line numbers."""
        return f"d{max(3, len(str(self.file.lines)))}"

    @property
    def rank_digits(self) -> str:
        """Returns the CSS class for the width of the column with ranks."""
        return f"w{self.widest_rank}"

    def earlier(self, page: str = "log") -> str | None:
        return self._address({"before": self.before}, page) if self.before else None

    def later(self, page: str = "log") -> str | None:
        return self._address({"from": self.after}, page) if self.after else None

    def beginning(self) -> str:
        return self._address({"from": 1})

    def end(self) -> str:
        return self._address({"before": self.file.lines + 1})

    def line(self, number: int, file: str | None = None) -> str:
        """Returns the URL of a line: on this page if it is shown here, else on the log's page. `file` is None if the
        run is one file."""
        here = file is None or file == self.file.name
        if here and self.first <= number <= self.last and self.wanted.rank is None:
            return f"#L{number}"
        return self.at(number, file)

    def at(self, number: int, file: str | None = None, rank: int | None = None) -> str:
        """Returns the URL of a line on the log's page, among the lines of one rank if one is given."""
        kept = replace(self, wanted=replace(self.wanted, rank=rank))
        return f"{kept._address({'line': number}, file=file)}#L{number}"

    def wrapped(self, wrap: bool) -> str:
        """Returns the URL of the same lines, with long lines wrapped or not."""
        here: dict[str, int | None]
        here = {"line": self.wanted.around} if self.wanted.around is not None else {"from": self.first or None}
        return replace(self, wanted=replace(self.wanted, wrap=wrap))._address(here)

    def raw(self) -> str:
        """Returns the URL of the stored file."""
        return f"/incidents/{self.incident}/log.txt" + (
            f"?{urlencode({'file': self.file.name})}" if self.several else ""
        )

    def viewer(self) -> str:
        """Returns the URL of this piece on the log's page."""
        return self._address({"from": self.first} if self.first else {})

    def _address(self, query: dict[str, int | None], page: str = "log", file: str | None = None) -> str:
        wanted = self.wanted
        kept: dict[str, str | int | None] = {"file": file or self.file.name} if self.several else {}
        kept |= {"rank": wanted.rank, "q": wanted.words, "whole": "1" if wanted.whole else None}
        kept |= {"regex": "1" if wanted.regex else None, "wrap": None if wanted.wrap else "0"}
        given = {name: value for name, value in (kept | query).items() if value is not None}
        return f"/incidents/{self.incident}/{page}" + (f"?{urlencode(given)}" if given else "")


def log_piece(service: Service, incident: Incident, verdict: Verdict | None, wanted: Wanted) -> LogPiece:
    """Returns the requested lines; by default, those around the first evidence, or the end of the log."""
    return _piece(service, incident, verdict, wanted, None)


def excerpt(service: Service, incident: Incident, verdict: Verdict | None) -> LogPiece:
    """Returns the lines around the first evidence, or the end of the log. What ranks repeat is joined, and a progress
    bar is shown once a line."""
    return _piece(service, incident, verdict, Wanted(), _EXCERPT)


def no_lines(incident: Incident) -> LogPiece:
    """Returns a piece without lines, for the URLs of lines on the log's page."""
    stored = incident.log.files
    return LogPiece(incident.id, Wanted(), stored[0], len(stored) > 1, (), 0)


def _piece(
    service: Service, incident: Incident, verdict: Verdict | None, wanted: Wanted, most_rows: int | None
) -> LogPiece:
    stored = incident.log.files
    named = wanted.file if wanted.file is not None else _file_of(verdict)
    file = next((known for known in stored if known.name == named), stored[0])
    choice = stored[:_MAX_FILES] if file in stored[:_MAX_FILES] else (file, *stored[: _MAX_FILES - 1])
    frame = LogPiece(incident.id, wanted, file, len(stored) > 1, choice, len(stored) - len(choice))
    try:
        return _filled(service, incident, verdict, frame, most_rows)
    except TriageError as error:  # the page says more than the log, so it is shown without it
        return replace(frame, problem=error.message)


def _filled(
    service: Service, incident: Incident, verdict: Verdict | None, frame: LogPiece, most_rows: int | None
) -> LogPiece:
    wanted, file = frame.wanted, frame.file
    if wanted.rank is None:
        found = _plain(service, incident, verdict, frame, most_rows)
        before, after = _neighbours(found, file)
    else:
        found, before, after = _of_rank(service, incident, verdict, frame, _LINES)
    known = writers(service, incident, file)
    made = rows(found, known, verdict, file, len(incident.log.files) > 1, _asked(wanted), wanted.words, wanted.regex)
    shown = made if wanted.whole else folded(joined(settled(made), known) if most_rows else made, known)
    if most_rows and shown:
        shown = _fitting(shown[:most_rows], _focus(verdict, frame))
        after = shown[-1].last + 1 if shown[-1].last < file.lines else None
    return replace(
        frame,
        rows=shown,
        first=found[0].line if found else 0,
        last=shown[-1].last if shown else 0,
        before=before,
        after=after,
        widest_rank=widest_rank(verdict, made),
    )


def _asked(wanted: Wanted) -> range:
    """Returns the lines that the URL names."""
    return range(wanted.around, (wanted.until or wanted.around) + 1) if wanted.around is not None else range(0)


def _plain(
    service: Service, incident: Incident, verdict: Verdict | None, frame: LogPiece, most_rows: int | None
) -> list[StoredLine]:
    wanted, file = frame.wanted, frame.file
    if wanted.before is not None:
        end = min(max(wanted.before, 2), file.lines + 1)
        first = max(1, end - _LINES)
        return _light(reversed(read_log(service, incident, first, end - first, file.name)[1]), _CHARACTERS)[::-1]
    count = _JOINED if most_rows else _LINES
    focus = _focus(verdict, frame)
    first = focus if wanted.first is not None else max(1, focus - _BEFORE)
    if wanted.around is None and wanted.first is None and focus == file.lines:
        first = max(1, file.lines - (most_rows or count) + 1)
    if wanted.first is None and file.lines <= _FITS and file.bytes <= _CHARACTERS and most_rows is None:
        return list(read_log(service, incident, 1, count, file.name)[1])
    lines = read_log(service, incident, first, count, file.name)[1]
    above = _light((line for line in reversed(lines) if line.line < focus), _CHARACTERS // 3, at_least=0)[::-1]
    left = (2 if most_rows else 1) * _CHARACTERS - sum(len(line.text) for line in above)  # half of it may be folded
    return above + _light((line for line in lines if line.line >= focus), left)


def _of_rank(
    service: Service, incident: Incident, verdict: Verdict | None, frame: LogPiece, count: int
) -> tuple[list[StoredLine], int | None, int | None]:
    """Returns lines of one rank, and where to continue before and after them."""
    wanted, file = frame.wanted, frame.file
    rank = wanted.rank
    assert rank is not None
    if wanted.before is not None:
        found = stream(service, incident, file, rank, wanted.before - 1, count, _CHARACTERS, back=True)
        return list(reversed(found.lines)), found.next and found.next + 1, min(wanted.before, file.lines)
    focus = _focus(verdict, frame)
    above = stream(service, incident, file, rank, focus - 1, _BEFORE, _CHARACTERS // 3, back=True)
    if wanted.first is not None:
        above = replace(above, lines=(), next=focus - 1 or None)
    below = stream(service, incident, file, rank, focus, count, _CHARACTERS)
    return [*reversed(above.lines), *below.lines], above.next and above.next + 1, below.next


def _neighbours(found: list[StoredLine], file: StoredFile) -> tuple[int | None, int | None]:
    if not found:
        return None, None
    first, last = found[0].line, found[-1].line
    return first if first > 1 else None, last + 1 if last < file.lines else None


def _file_of(verdict: Verdict | None) -> str | None:
    lines = key_lines(verdict)
    return lines[0].file if lines else None


def _focus(verdict: Verdict | None, frame: LogPiece) -> int:
    """Returns the line that must be shown."""
    wanted, file = frame.wanted, frame.file
    shown = [line.line for line in key_lines(verdict) if line.file in (None, file.name)]
    asked = wanted.first if wanted.first is not None else wanted.around
    return min(max(asked if asked is not None else shown[0] if shown else file.lines, 1), max(file.lines, 1))


def _fitting(made: Sequence[Row], focus: int) -> tuple[Row, ...]:
    """Returns the first rows with at most _CHARACTERS together, folded ones not counted, and all up to the focus."""
    left, kept = _CHARACTERS, []
    for row in made:
        left -= len(row.text)
        if left < 0 and row.number > focus:
            break
        kept.append(row)
    return tuple(kept)


def _light(lines: Iterable[StoredLine], most: int, at_least: int = 1) -> list[StoredLine]:
    """Returns the first lines with at most `most` characters together, and at least `at_least` lines."""
    kept: list[StoredLine] = []
    for line in lines:
        most -= len(line.text)
        if most < 0 and len(kept) >= at_least:
            break
        kept.append(line)
    return kept
