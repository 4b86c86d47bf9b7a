"""`/incidents/{id}/log`: the log, whatever its size, in pieces. Other routes serve the page's script."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from http import HTTPStatus
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.answer.localized_verdict import localized, title_of
from torchtriage.domain.incident import Incident, StoredFile
from torchtriage.domain.verdict import Verdict
from torchtriage.errors import BadInput
from torchtriage.services.incidents import read_incident
from torchtriage.services.log_search import Found, Hits, LineQuery, find, find_all
from torchtriage.services.service import Service
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.json_responses import Answer
from torchtriage.web.pages.language import language
from torchtriage.web.pages.line_range import lines_asked
from torchtriage.web.pages.log_rows import marked
from torchtriage.web.pages.log_window import LogPiece, Wanted, log_piece
from torchtriage.web.pages.rendering import render

router = APIRouter()
_MAX_WORDS_LENGTH = 300  # characters
_TIMEOUT = 2.0  # seconds that a page without script looks for a line
_MAX_MARKS = 200
_MAX_HITS = 200  # lines of a list of hits
_ALL = "all"
_GO = {"next": False, "previous": True, "error": False, "error-back": True}


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that the verdict refers to, and its position in the file in thousandths."""

    line: int
    kind: str
    place: int


@dataclass(frozen=True, slots=True)
class LogPage:
    """`hits` are requested by `go=all`; `more_hits` is the URL that continues the search. `refused` says why the
    expression is invalid. `missed` is set if no line was found. `look_on` is the URL that continues the search where it
    ran out of time, or at the other end of the log; None if the whole log was searched. `back`: the search went
    backwards."""

    incident: Incident
    title: str | None
    outcome: str
    log: LogPiece
    marks: tuple[Mark, ...]
    missed: Found | None
    look_on: str | None
    back: bool
    hits: Hits | None = None
    more_hits: str | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class HitsPage:
    """Only the list of hits, for the page's script."""

    log: LogPiece
    hits: Hits


@router.get("/incidents/{incident_id}/log")
def log(request: Request, service: ServiceDep, incident_id: str) -> Response:
    found = read_incident(service, incident_id)
    verdict = localized(found.verdict, service.knowledge, language(request)) if found.verdict else None
    wanted = wanted_of(request)
    piece = log_piece(service, found, verdict, wanted)
    go = request.query_params.get("go", "")
    page = _page(service, request, found, verdict, piece)
    if piece.problem or go not in (*_GO, _ALL):
        return render(request, "log.html", page)
    try:
        if go == _ALL:
            return render(request, "log.html", _with_hits(service, request, page))
        hit = _look(service, found, piece, go)
    except BadInput as error:
        return render(request, "log.html", replace(page, refused=error.message), HTTPStatus.BAD_REQUEST)
    if hit.line is not None:
        return RedirectResponse(piece.at(hit.line, piece.file.name, wanted.rank), HTTPStatus.SEE_OTHER)
    return render(request, "log.html", replace(page, missed=hit, look_on=_look_on(request, piece, hit)))


@router.get("/incidents/{incident_id}/log/piece")
def piece(request: Request, service: ServiceDep, incident_id: str) -> Response:
    """Returns a piece as HTML without a page around it, for the page's script."""
    found = read_incident(service, incident_id)
    verdict = localized(found.verdict, service.knowledge, language(request)) if found.verdict else None
    return render(request, "log_piece.html", log_piece(service, found, verdict, wanted_of(request)))


@router.get("/incidents/{incident_id}/log/find")
def find_line(request: Request, service: ServiceDep, incident_id: str) -> Response:
    """Searches for a line for half a second, for the page's script, which then continues from there."""
    incident = read_incident(service, incident_id)
    go = request.query_params.get("go", "")
    wanted = wanted_of(request)
    start = _start(wanted, go)
    sought = _sought(wanted, go)
    file = next((known for known in incident.log.files if known.name == wanted.file), incident.log.files[0])
    hit = _found(service, incident, file, sought, start, _GO.get(go, False))
    return Answer({"line": hit.line, "looked": hit.looked, "ended": hit.ended, "lines": file.lines})


@router.get("/incidents/{incident_id}/log/hits")
def hits(request: Request, service: ServiceDep, incident_id: str) -> Response:
    """Searches for all matching lines for half a second, for the page's script, which then continues from there."""
    incident = read_incident(service, incident_id)
    wanted = wanted_of(request)
    file = next((known for known in incident.log.files if known.name == wanted.file), incident.log.files[0])
    several = len(incident.log.files) > 1
    log = LogPiece(incident.id, wanted, file, several, (), 0)
    found = find_all(service, incident, file, _sought(wanted, _ALL), wanted.first or 1, _MAX_HITS)
    return render(request, "log_hits.html", HitsPage(log, found))


def wanted_of(request: Request) -> Wanted:
    """Returns what the URL requests. Invalid values are ignored."""
    around, until = lines_asked(request)
    words = "".join(char for char in request.query_params.get("q", "")[:_MAX_WORDS_LENGTH] if char.isprintable())
    return Wanted(
        file=request.query_params.get("file"),
        first=_number(request, "from"),
        before=_number(request, "before"),
        around=around,
        until=until,
        rank=_number(request, "rank"),
        words=words.strip() or None,
        whole=request.query_params.get("whole") == "1",
        regex=request.query_params.get("regex") == "1",
        wrap=request.query_params.get("wrap") != "0",
    )


def _look(service: Service, incident: Incident, piece: LogPiece, go: str) -> Found:
    """Returns the line found within the time that a reader waits for a page."""
    wanted, until = piece.wanted, time.monotonic() + _TIMEOUT
    back, sought = _GO[go], _sought(wanted, go)
    hit = Found(None, _start(wanted, go), False)
    start = hit.looked
    while True:
        hit = _found(service, incident, piece.file, sought, start, back)
        if hit.line is not None or hit.ended or time.monotonic() > until:
            return hit
        start = hit.looked + (-1 if back else 1)


def _found(service: Service, incident: Incident, file: StoredFile, sought: LineQuery, start: int, back: bool) -> Found:
    if start < 1 or start > file.lines:
        return Found(None, min(max(start, 1), max(file.lines, 1)), True)
    return find(service, incident, file, sought, start, back)


def _sought(wanted: Wanted, go: str) -> LineQuery:
    error = go.startswith("error") or not wanted.words
    return LineQuery(None if error else wanted.words, error, wanted.rank, wanted.regex)


def _with_hits(service: Service, request: Request, page: LogPage) -> LogPage:
    """Returns the page with the lines found within the time that a reader waits for it."""
    piece, until = page.log, time.monotonic() + _TIMEOUT
    start = _number(request, "hits") or 1
    hits = find_all(service, page.incident, piece.file, _sought(piece.wanted, _ALL), start, _MAX_HITS)
    while not hits.ended and len(hits.lines) < _MAX_HITS and time.monotonic() < until:
        room = _MAX_HITS - len(hits.lines)
        more = find_all(service, page.incident, piece.file, _sought(piece.wanted, _ALL), hits.looked + 1, room)
        hits = Hits((*hits.lines, *more.lines), hits.count + more.count, more.looked, more.ended)
    listed = hits.lines[-1].line if hits.count > len(hits.lines) else hits.looked
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in ("hits", "lang")]
    more_hits = None if hits.ended and hits.count == len(hits.lines) else listed + 1
    address = f"{request.url.path}?{urlencode([*kept, ('hits', more_hits)])}" if more_hits else None
    return replace(page, hits=hits, more_hits=address)


def _start(wanted: Wanted, go: str) -> int:
    """Returns the line at which to start: the one after or before the line in the URL."""
    here = wanted.around if wanted.around is not None else wanted.first
    if here is None:
        return 1
    return here - 1 if _GO.get(go) else here + 1


def _page(
    service: Service,
    request: Request,
    incident: Incident,
    verdict: Verdict | None,
    piece: LogPiece,
) -> LogPage:
    root = verdict.root_cause if verdict else None
    lines = max(piece.file.lines, 1)
    known = marked(verdict, piece.file, piece.several)
    return LogPage(
        incident=incident,
        title=title_of(root.entry, service.knowledge, language(request), root.title) if root else None,
        outcome=verdict.outcome if verdict else incident.state.value,
        log=piece,
        marks=tuple(Mark(line, kind, 1000 * (line - 1) // lines) for line, kind in list(known.items())[:_MAX_MARKS]),
        missed=None,
        look_on=None,
        back=_GO.get(request.query_params.get("go", ""), False),
    )


def _look_on(request: Request, piece: LogPiece, missed: Found) -> str | None:
    go = request.query_params["go"]
    line = missed.looked
    if missed.ended:
        start, last = _start(piece.wanted, go), piece.file.lines
        if (start >= last) if _GO[go] else (start <= 1):
            return None
        line = last + 1 if _GO[go] else 0
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in ("line", "lang")]
    return f"{request.url.path}?{urlencode([*kept, ('line', line)])}"


def _number(request: Request, name: str) -> int | None:
    asked = request.query_params.get(name, "").strip()
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) <= 15 else None
