"""`/incidents/{id}/log.txt`: a stored file, or some of its lines, to save or copy."""

from __future__ import annotations

from itertools import chain

from fastapi import APIRouter, Request, Response
from starlette.responses import PlainTextResponse, StreamingResponse

from torchtriage.errors import NotFound
from torchtriage.services.incidents import read_incident, read_log
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.line_range import lines_asked
from torchtriage.web.pages.urls import value

router = APIRouter()
_MAX_LINES = 5000  # of a piece, which is made in memory


@router.get("/incidents/{incident_id}/log.txt")
def text(request: Request, service: ServiceDep, incident_id: str) -> Response:
    """Returns the lines in `line=10-20`, or the whole file to save. `file` names one of the incident's files."""
    incident = read_incident(service, incident_id)
    name = value(request, "file")
    file = next((known for known in incident.log.files if known.name == name), None) if name else incident.log.files[0]
    if file is None:
        raise NotFound("no such file in the incident's log", file=name)
    first, last = lines_asked(request)
    if first is not None:
        count = min((last or first) - first + 1, _MAX_LINES)
        lines = read_log(service, incident, max(first, 1), count, file.name)[1]
        return PlainTextResponse("".join(f"{line.text}\n" for line in lines))
    kept = {
        "Content-Disposition": f'attachment; filename="incident-{incident.id}.log"',
        "Content-Length": str(file.bytes),
    }
    chunks = service.blobs.chunks(file.sha256)
    first_one = next(chunks, b"")  # now, while what is wrong can still be answered
    return StreamingResponse(chain([first_one], chunks), media_type="text/plain", headers=kept)
