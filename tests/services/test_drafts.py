"""Drafts of entries: proposed from a failure, and kept so that nobody's words are lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.drafts import SAYS, SIGN, SOUND, UNKNOWN
from tests.services.logs import HEALTHY, OUT_OF_MEMORY, triaged
from torchtriage.domain.draft import Draft
from torchtriage.errors import BadInput, NotFound
from torchtriage.services import drafts
from torchtriage.services.incidents import forget_incident
from torchtriage.services.service import Service
from torchtriage.services.tokens import changes
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.storage.drafts import EditedMeanwhile, EntryTaken

BARE = Draft("ourdata.begun", title_en="Only a title")


def test_a_proposal_has_the_sign_of_the_line_and_the_logs_own_lines(service: Service) -> None:
    incident = triaged(service, UNKNOWN.replace("shard 3", "\x1b[31mshard 3\x1b[0m").encode(), "1")
    proposed = drafts.propose(service, incident)
    assert proposed.draft.sign.startswith(SIGN)
    assert (proposed.draft.entry, proposed.draft.search_in) == ("new.shard-too-short", "exception")
    assert proposed.draft.example == "\n".join(UNKNOWN.splitlines()[2:])
    assert proposed.slots["path"] == "/data/a.idx"
    assert proposed.slots["step"] == "200"
    assert f"incident {incident}, 20" in proposed.draft.source


def test_an_example_holds_no_secret_of_the_log(service: Service) -> None:
    secret = "hf_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3b"
    incident = triaged(service, UNKNOWN.replace("index says", f"token {secret}, index says").encode(), "1")
    proposed = drafts.propose(service, incident)
    assert secret not in proposed.draft.example + proposed.draft.sign + "".join(proposed.slots.values())
    stored, _ = drafts.create_draft(service, dataclasses.replace(BARE, says_en=f"use {secret}"), incident, "ann")
    assert secret not in stored.draft.says_en


def test_without_a_failure_there_is_nothing_to_draft(service: Service) -> None:
    with pytest.raises(BadInput, match="nothing failed"):
        drafts.propose(service, triaged(service, HEALTHY, "1"))
    with pytest.raises(NotFound):
        drafts.propose(service, "77")


def test_a_draft_with_problems_is_stored(service: Service) -> None:
    incident = triaged(service, UNKNOWN.encode(), "1")
    stored, checked = drafts.create_draft(service, BARE, incident, "ann")
    assert not checked.sound
    assert drafts.read_draft(service, stored.id) == stored
    assert (stored.draft, stored.revision, stored.incident, stored.expect) == (BARE, 1, incident, None)
    assert drafts.draft_of(service, incident) == stored
    changed, checked = drafts.change_draft(service, stored.id, 1, SOUND, "bob")
    assert (checked.sound, changed.revision, changed.changed_by, changed.created_by) == (True, 2, "bob", "ann")
    assert changed.expect
    assert changed.expect.en == SAYS
    assert drafts.list_drafts(service) == [changed]
    forget_incident(service, incident, "ann")
    assert drafts.read_draft(service, stored.id).incident is None


def test_the_second_of_two_editors_gets_an_error_and_overwrites_nothing(service: Service) -> None:
    stored, _ = drafts.create_draft(service, BARE, None, "ann")
    drafts.change_draft(service, stored.id, 1, dataclasses.replace(BARE, title_en="Bob's"), "bob")
    with pytest.raises(EditedMeanwhile, match="bob has changed") as told:
        drafts.change_draft(service, stored.id, 1, dataclasses.replace(BARE, title_en="Ann's"), "ann")
    assert told.value.detail["revision"] == 2
    with pytest.raises(EditedMeanwhile):
        drafts.remove_draft(service, stored.id, 1, "ann")
    assert drafts.read_draft(service, stored.id).draft.title_en == "Bob's"


def test_an_id_belongs_to_one_draft_and_to_no_entry(service: Service) -> None:
    stored, _ = drafts.create_draft(service, BARE, None, "ann")
    other, _ = drafts.create_draft(service, dataclasses.replace(BARE, entry="ourdata.other"), None, "ann")
    again: list[Callable[[], object]] = [
        lambda: drafts.create_draft(service, BARE, None, "bob"),
        lambda: drafts.change_draft(service, other.id, 1, BARE, "bob"),
    ]
    for attempt in again:
        with pytest.raises(EntryTaken) as told:
            attempt()
        assert told.value.detail["draft"] == stored.id
    with pytest.raises(BadInput, match="give the draft an id"):
        drafts.create_draft(service, Draft(), None, "ann")
    shipped = drafts.check(service, dataclasses.replace(SOUND, entry="cuda.oom"))
    assert ("entry", "an entry with this id exists already") in [(p.field, p.message) for p in shipped.problems]


def test_every_change_is_in_the_audit_log_with_the_old_value(service: Service) -> None:
    stored, _ = drafts.create_draft(service, BARE, None, "ann")
    drafts.change_draft(service, stored.id, 1, SOUND, "bob")
    drafts.remove_draft(service, stored.id, 2, "cy")
    told = changes(service.database, ChangeFilter(subject=f"draft {stored.id}"), 10).items
    assert [(change.by, change.action) for change in told] == [("cy", "remove"), ("bob", "change"), ("ann", "create")]
    assert told[0].detail["before"]["title_en"] == SOUND.title_en
    assert told[1].detail["before"]["title_en"] == BARE.title_en
    with pytest.raises(NotFound):
        drafts.read_draft(service, stored.id)


def test_a_text_that_is_too_long_is_refused(service: Service) -> None:
    with pytest.raises(BadInput, match="more than 20000"):
        drafts.create_draft(service, dataclasses.replace(BARE, says_en="x" * 20_001), None, "ann")


def test_an_explained_failure_can_be_drafted_too(service: Service) -> None:
    proposed = drafts.propose(service, triaged(service, OUT_OF_MEMORY, "1"))
    assert "CUDA out of memory" in proposed.draft.sign
