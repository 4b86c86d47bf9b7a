"""The brief of a stored incident, from its verdict and the lines of its log that the verdict cites."""

from __future__ import annotations

from itertools import accumulate

from torchtriage.answer.brief.brief import Brief, brief, lines_needed
from torchtriage.answer.brief.token_count import TOKENS
from torchtriage.answer.localized_verdict import localized
from torchtriage.domain.entry import Language
from torchtriage.domain.incident import Incident, StoredFile
from torchtriage.errors import NotTriaged
from torchtriage.reading.prefixes.paths import FileOrigin, FileOrigins
from torchtriage.reading.reread_lines import MAX_LENGTH, TAIL, SeenAgain, WantedLines, joined, tail_lines
from torchtriage.services.service import Service

_TAIL_LINES = 1000
_MAX_TAILS = 16  # maximum files of which the last lines are read


def incident_brief(service: Service, incident: Incident, lang: Language = "en", tokens: int = TOKENS) -> Brief:
    """Returns the brief of an incident. Decompresses only the zstd frames of the log that contain wanted lines. Raises
    NotTriaged, NotFound, DamagedLog and StorageUnavailable."""
    if incident.verdict is None:
        raise NotTriaged("the incident has no verdict", state=incident.state)
    verdict = localized(incident.verdict, service.knowledge, lang)
    return brief(verdict, _look(service, incident, lines_needed(verdict)), lang, tokens)


def _look(service: Service, incident: Incident, wanted: WantedLines) -> SeenAgain:
    seen = SeenAgain()
    files = incident.log.files
    origins = FileOrigins(file.name for file in files)
    for file in files:
        origin = origins.of(file.name, len(files) > 1)
        for span in joined(span for span in wanted.spans if span.file == origin.file):
            for line in service.blobs.lines(file.sha256, span.first, span.last - span.first + 1):
                seen.lines[origin.file, line.line] = line.text[:MAX_LENGTH]
        if wanted.tail_of(origin) and len(seen.tails) < _MAX_TAILS:
            _read_tail(service, file, origin, seen)
    return seen


def _read_tail(service: Service, file: StoredFile, origin: FileOrigin, seen: SeenAgain) -> None:
    first = max(1, file.lines - _TAIL_LINES + 1)
    texts = [line.text.encode("utf-8", "replace") for line in service.blobs.lines(file.sha256, first, _TAIL_LINES)]
    ends = accumulate(len(text) + 1 for text in reversed(texts))
    kept = sum(1 for end in ends if end <= TAIL)
    if kept:
        content = b"\n".join(texts[len(texts) - kept :]) + b"\n"
        seen.tails[origin.file] = tail_lines(first + len(texts) - kept, content, origin)
