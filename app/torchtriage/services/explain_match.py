"""Says why an entry did or did not match an incident's log or a given text."""

from __future__ import annotations

from torchtriage.answer.explain_match import Why
from torchtriage.domain.entry import Language
from torchtriage.domain.incident import Incident
from torchtriage.errors import BadInput, NotFound
from torchtriage.services.engine_runner import Order
from torchtriage.services.service import Service
from torchtriage.storage.blob_writer import spool

MAX_BYTES = 64 << 20  # maximum bytes of a log that is read while a page waits
MAX_TEXT = 200_000  # maximum characters of a given text


def explain_mismatch(service: Service, incident: Incident, entry: str, lang: Language) -> Why | None:
    """Returns the explanation, or None if the log is too long to read while a page waits.

    Raises NotFound and the errors of a triage.
    """
    log = incident.log
    files = tuple((file.name, file.sha256) for file in log.files)
    return _why(service, Order(files, log.bytes, lang), entry) if log.bytes <= MAX_BYTES else None


def explain_text(service: Service, text: str, entry: str, lang: Language) -> Why:
    """Returns the explanation for a text, which is not stored.

    Raises NotFound, StorageUnavailable, BadInput if the text is empty or too long, and the errors of a triage.
    """
    if not text.strip():
        raise BadInput("no text to match")
    if len(text) > MAX_TEXT:
        raise BadInput(f"the text is longer than {MAX_TEXT} characters")
    source = text.replace("\r\n", "\n").encode("utf-8", "replace")  # forms send CRLF line ends
    with service.blobs.folder() as folder:
        path = folder / "text"
        return _why(service, Order((("text", path),), spool([source], path), lang), entry)


def _why(service: Service, order: Order, entry: str) -> Why:
    if entry not in service.knowledge.entries:
        raise NotFound("no such entry", entry=entry[:100])
    return service.triager.why(order, entry)
