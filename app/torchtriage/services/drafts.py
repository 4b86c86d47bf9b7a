"""Entries that people write on the page: proposed from a failure, checked and stored, complete or not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from torchtriage.domain.access import AuditLine
from torchtriage.domain.draft import Draft, DraftCheck, DraftStep, Proposal, StoredDraft
from torchtriage.domain.entry import Text
from torchtriage.domain.incident import Incident
from torchtriage.domain.json_form import fields_form
from torchtriage.domain.verdict import Evidence
from torchtriage.errors import BadInput, TriageError
from torchtriage.knowledge.added_cases import is_in_use
from torchtriage.knowledge.example_extraction import AFTER, BEFORE, cut
from torchtriage.knowledge.new_entry import case_name, failure, name_for
from torchtriage.knowledge.proposed_sign import proposed_sign
from torchtriage.reading.prefixes.strip import ANSI
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service
from torchtriage.services.user_text import cleaned
from torchtriage.storage import audit_log, drafts

MAX_TEXT = 20_000  # maximum characters of a field
_MAX_SLOTS, _MAX_SLOT_LENGTH = 40, 80
_TEXTS = ("entry", "title_en", "title_zh", "sign", "says_en", "says_zh", "source", "example", "near_miss")


def propose(service: Service, incident_id: str, as_case: bool = False) -> Proposal:
    """Returns the draft of an entry for the failure of an incident: a sign from its masked line, lines of the log as
    example, and the slots that its sentences can use. With `as_case`, the draft is a case of the entry that names the
    cause. Raises NotFound, and BadInput if nothing failed or, with `as_case`, no entry names the cause."""
    found = read_incident(service, incident_id)
    if found.verdict is None:
        raise BadInput("nothing failed in this incident")
    message = _visible(_first_line(failure(found.verdict)))
    root = found.verdict.root_cause
    sign = proposed_sign(message)
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    known_entry = service.knowledge.entries.get(root.entry or "") if root else None
    if as_case and known_entry is None:
        raise BadInput("no entry names the cause of this incident")
    title = known_entry.title if as_case and known_entry else Text("", "")
    draft = Draft(
        entry=f"{known_entry.id}/{case_name(message)}" if as_case and known_entry else name_for(message),
        title_en=title.en,
        title_zh=title.zh or "",
        sign=sign.regex,
        search_in="exception" if root and root.exception else "line",
        source=f"incident {found.id}, {day}",
        example=_example(service, found, message),
    )
    slots = {name: value for name, value in sign.groups.items() if name in sign.regex}
    known = {fact.name: fact.text for fact in found.verdict.facts if fact.text and "\n" not in fact.text}
    slots |= {name: value for name, value in known.items() if name not in slots}
    values = {name: value[:_MAX_SLOT_LENGTH] for name, value in list(slots.items())[:_MAX_SLOTS]}
    return Proposal(draft, found.id, values)


def check(service: Service, draft: Draft, whole: bool = False) -> DraftCheck:
    """Returns the problems that `kb check` finds in a draft, each with its field. For a case added to an entry, the
    default check is fast enough while somebody types. Only with `whole` does it find other cases of the entry that lose
    their examples; this takes about one second per dozen cases. Raises CallFailed and Interrupted."""
    with service.database.reading() as session:
        ours = {one.draft.entry for one in drafts.applied(session)}  # these drafts are entries in use themselves
    in_use = draft.entry not in ours and is_in_use(draft.entry, service.knowledge.entries)
    taken = (draft.entry,) if in_use else ()
    return service.triager.check_draft(draft, taken, whole)


def list_drafts(service: Service) -> list[StoredDraft]:
    """Returns all drafts, latest change first."""
    with service.database.reading() as session:
        return drafts.listed(session)


def read_draft(service: Service, draft_id: str) -> StoredDraft:
    """Returns a draft. Raises NotFound."""
    with service.database.reading() as session:
        return drafts.read(session, draft_id)


def draft_of(service: Service, incident_id: str) -> StoredDraft | None:
    """Returns the latest draft made from an incident, or None."""
    with service.database.reading() as session:
        return drafts.of_incident(session, incident_id)


def create_draft(service: Service, draft: Draft, incident_id: str | None, by: str) -> tuple[StoredDraft, DraftCheck]:
    """Stores a new draft, even if it has problems. Returns the draft and its problems. Raises EntryTaken."""
    draft, checked = _ready(service, draft)
    now = datetime.now(UTC)
    if incident_id is not None:
        incident_id = read_incident(service, incident_id).id
    with service.database.transaction() as session:
        draft_id = drafts.add(session, draft, checked.says, incident_id, by, now)
        detail = {"before": None, "after": fields_form(draft)}
        audit_log.add(session, AuditLine(now, by, "create", f"draft {draft_id}", detail))
        return drafts.read(session, draft_id), checked


def change_draft(
    service: Service, draft_id: str, revision: int, draft: Draft, by: str, undoes: str | None = None
) -> tuple[StoredDraft, DraftCheck]:
    """Stores the changed draft, even if it has problems. Returns it and its problems. The audit log notes the action
    that this `undoes`.

    Raises NotFound, EntryTaken, and EditedMeanwhile if somebody changed the draft after `revision`.
    """
    draft, checked = _ready(service, draft)
    now = datetime.now(UTC)
    with service.database.transaction() as session:
        before = drafts.change(session, draft_id, revision, draft, checked.says, by, now)
        detail: dict[str, Any] = {"before": fields_form(before.draft), "after": fields_form(draft)}
        detail |= {"undoes": undoes} if undoes else {}
        audit_log.add(session, AuditLine(now, by, "change", f"draft {draft_id}", detail))
        return drafts.read(session, draft_id), checked


def remove_draft(service: Service, draft_id: str, revision: int, by: str) -> None:
    """Deletes a draft. Raises NotFound and EditedMeanwhile."""
    with service.database.transaction() as session:
        before = drafts.remove(session, draft_id, revision)
        detail = {"before": fields_form(before.draft)}
        audit_log.add(session, AuditLine(datetime.now(UTC), by, "remove", f"draft {draft_id}", detail))


def _ready(service: Service, draft: Draft) -> tuple[Draft, DraftCheck]:
    """Returns the draft as it will be stored, and its problems. Raises BadInput if a field is too long or the id is
    missing."""
    texts: dict[str, Any] = {name: _clean(getattr(draft, name)) for name in _TEXTS}
    steps = tuple(DraftStep(_clean(step.en), _clean(step.zh), _clean(step.run)) for step in draft.steps)
    draft = replace(draft, **texts, steps=steps)
    if not draft.entry:
        raise BadInput("give the draft an id, so that it can be saved")
    return draft, check(service, draft)


def _clean(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise BadInput(f"a field has more than {MAX_TEXT} characters")
    return cleaned(text)


def _first_line(message: str) -> str:
    return next((line for line in message.splitlines() if line.strip()), message)


def _example(service: Service, found: Incident, message: str) -> str:
    """Returns the log's lines that show the failure, or only the message if the log cannot be read."""
    root = found.root_cause
    line = _evidence(root.evidence if root else (), message)
    file = next((file for file in found.log.files if line and line.file in (None, file.name)), None)
    if line is None or file is None:
        return _visible(message)
    first = max(1, line.line - BEFORE)
    try:
        sample = [each.text for each in service.blobs.lines(file.sha256, 1, BEFORE)]
        near = [each.text for each in service.blobs.lines(file.sha256, first, line.line - first + 1 + AFTER)]
        at = line.line - first
        return _visible(cut(sample, near[:at], near[at], near[at + 1 :])[1])
    except (TriageError, IndexError):
        return _visible(message)


def _visible(text: str) -> str:
    """Returns the text without colors and without characters that a form does not show."""
    return "".join(char for char in ANSI.sub("", text) if char.isprintable() or char in "\n\t")


def _evidence(evidence: tuple[Evidence, ...], message: str) -> Evidence | None:
    """Returns the first evidence line that contains the message, or else the first line."""
    return next((line for line in evidence if message in line.text), evidence[0] if evidence else None)
