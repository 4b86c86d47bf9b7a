"""Changes the state of drafts: tracks them, approves them, takes them back, and undoes the last change."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from torchtriage.domain.access import AuditLine, Scope
from torchtriage.domain.back_test import BackTest
from torchtriage.domain.draft import Draft, DraftState, StoredDraft
from torchtriage.domain.json_form import from_json_form
from torchtriage.errors import BadInput, KnowledgeError
from torchtriage.knowledge.added_cases import is_in_use, split_id
from torchtriage.services import tokens
from torchtriage.services.drafts import change_draft, check, read_draft
from torchtriage.services.learned_knowledge import adopt_learned
from torchtriage.services.service import Service
from torchtriage.storage import audit_log, drafts, retriage_reads
from torchtriage.storage.audit_log import ChangeFilter

log = logging.getLogger(__name__)
MAX_RETRIAGED = 10_000
_ACTIONS = {DraftState.TRACKING: "track", DraftState.APPLIED: "approve", DraftState.DRAFT: "take back"}
_UNDONE = ("track", "approve", "take back", "change")


class AnotherMustApprove(BadInput):
    """The author of a draft may not approve it if somebody else can."""

    status = 403
    code = "another_must_approve"


def move_draft(
    service: Service, draft_id: str, revision: int, state: DraftState, by: str, undoes: str | None = None
) -> StoredDraft:
    """Tracks a draft, approves it or takes it back, and returns it. An approved draft is used at once on this server,
    and within a minute on others. The audit log notes the action that this `undoes`.

    Raises NotFound, EditedMeanwhile, AnotherMustApprove, and BadInput if the draft has problems or the operator's
    knowledge folders do not load.
    """
    before = read_draft(service, draft_id)
    if state is not DraftState.DRAFT and before.state is not DraftState.APPLIED:
        problems = check(service, before.draft, whole=True).problems
        if wrong := [problem.message for problem in problems if not problem.warning]:
            raise BadInput(f"fix the problems of the draft first: {wrong[0]}")
    if state is DraftState.APPLIED and not may_approve(service, before, by):
        raise AnotherMustApprove(f"{before.changed_by} wrote this draft; somebody else must approve it")
    now = datetime.now(UTC)
    with service.database.transaction() as session:
        before = drafts.move(session, draft_id, revision, state, by, now)
        detail: dict[str, Any] = {"before": {"state": before.state}, "after": {"state": state}}
        detail |= {"undoes": undoes} if undoes else {}
        audit_log.add(session, AuditLine(now, by, _ACTIONS[state], f"draft {draft_id}", detail))
    if DraftState.APPLIED in (state, before.state):
        _adopt(service, before, state, by)
    return read_draft(service, draft_id)


def _adopt(service: Service, before: StoredDraft, state: DraftState, by: str) -> None:
    """Starts or stops using an entry. If that fails, restores the draft's state and raises BadInput."""
    try:
        adopt_learned(service)
    except KnowledgeError as error:
        log.warning("cannot load the knowledge folders: %s", error.message)
    if is_in_use(before.draft.entry, service.knowledge.entries) == (state is DraftState.APPLIED):
        return
    now = datetime.now(UTC)
    with service.database.transaction() as session:
        drafts.move(session, before.id, before.revision + 1, before.state, by, now)
        detail = {"before": {"state": state}, "after": {"state": before.state}}
        audit_log.add(session, AuditLine(now, by, _ACTIONS[before.state], f"draft {before.id}", detail))
    raise BadInput("the knowledge folders do not load now; see the service's log")


def may_approve(service: Service, draft: StoredDraft, by: str) -> bool:
    """Returns whether `by` may approve: not the draft's author, unless nobody else can."""
    if service.settings.auth == "none" or draft.changed_by != by:
        return True
    now = datetime.now(UTC)
    every = [*tokens.listed(service.database), *tokens.listed(service.database, sessions=True)]
    alive = [one for one in every if one.revoked_at is None and (one.expires_at is None or one.expires_at > now)]
    return not {one.name for one in alive if one.scopes & {Scope.WRITE, Scope.ADMIN}} - {by}


def history_of(service: Service, draft_id: str, most: int) -> tuple[AuditLine, ...]:
    """Returns the changes of a draft, newest first."""
    return tokens.changes(service.database, ChangeFilter(f"draft {draft_id}"), most).items


def can_undo(last: AuditLine) -> bool:
    """Returns whether the last change of a draft can be undone here."""
    return last.action in _UNDONE


def undo(service: Service, draft_id: str, revision: int, by: str) -> StoredDraft:
    """Undoes the last change of a draft and returns the draft. A second undo restores the change.

    Raises the errors of the change itself.
    """
    last = next(iter(history_of(service, draft_id, 1)), None)
    if last is None or not can_undo(last):
        raise BadInput("there is nothing to undo")
    before = last.detail["before"]
    if last.action == "change":
        return change_draft(service, draft_id, revision, from_json_form(Draft, before), by, last.action)[0]
    return move_draft(service, draft_id, revision, DraftState(before["state"]), by, last.action)


def tracking_of(service: Service, draft_id: str) -> BackTest:
    """Returns the counts of the draft's latest tracking. Raises NotFound."""
    with service.database.reading() as session:
        return drafts.tracking(session, draft_id)


def to_retriage(service: Service, draft: StoredDraft, tested: BackTest, tracking: BackTest) -> list[str]:
    """Returns the ids of incidents whose verdict a change of the draft's state affects. If it is in use now: those that
    the back-test and the tracking found. If not: those whose cause or answer comes from it."""
    if draft.state is DraftState.APPLIED:
        return sorted({*tested.changed, *tracking.changed}, key=int)[:MAX_RETRIAGED]
    with service.database.reading() as session:
        return retriage_reads.of_entry(session, *split_id(draft.draft.entry), MAX_RETRIAGED)
