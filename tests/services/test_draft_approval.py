"""What becomes of a draft: tracked, approved, in use, taken back, and the last change undone."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from tests.drafts import SAYS, SOUND, UNKNOWN
from tests.services.logs import HEALTHY, OUT_OF_MEMORY, triaged
from tests.services.test_retriage import entries
from torchtriage.domain.access import Scope
from torchtriage.domain.draft import DraftState, StoredDraft
from torchtriage.errors import BadInput
from torchtriage.knowledge.drafted_entry import yaml_of
from torchtriage.knowledge.git_patch import new_file_patch
from torchtriage.services import drafts, tokens
from torchtriage.services.back_test import BackTestJobs
from torchtriage.services.draft_approval import (
    AnotherMustApprove,
    history_of,
    move_draft,
    to_retriage,
    tracking_of,
    undo,
)
from torchtriage.services.draft_tracking import count_tracked
from torchtriage.services.incidents import read_incident
from torchtriage.services.learned_knowledge import adopt_learned
from torchtriage.services.maintenance import Maintenance
from torchtriage.services.retriage import Retriage
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.settings import Settings
from torchtriage.storage.drafts import EditedMeanwhile, InUse


def sound(service: Service) -> StoredDraft:
    return drafts.create_draft(service, SOUND, None, "ann")[0]


def moved(service: Service, stored: StoredDraft, state: DraftState, by: str = "bob") -> StoredDraft:
    return move_draft(service, stored.id, drafts.read_draft(service, stored.id).revision, state, by)


def test_a_draft_is_approved_retriaged_taken_back_and_undone(service: Service) -> None:
    before = triaged(service, UNKNOWN.encode(), "1")
    old, jobs = service.knowledge_version, BackTestJobs(service)
    stored = sound(service)
    jobs.start(stored.id, "ann")
    jobs.wait()
    approved = moved(service, stored, DraftState.APPLIED)
    assert (approved.state, approved.approved_by) == (DraftState.APPLIED, "bob")
    after = triaged(service, UNKNOWN.replace("3005", "7").encode(), "2")
    assert entries(service, before, after) == [None, SOUND.entry]
    answer = read_incident(service, after).verdict
    assert answer is not None
    assert answer.answer is not None
    assert "holds only 7 records" in answer.answer.says
    chosen = to_retriage(service, approved, jobs.progress(stored.id), tracking_of(service, stored.id))
    assert chosen == [before]
    assert len(list(Retriage(service, chosen).change("bob"))) == 1
    assert entries(service, before, after) == [SOUND.entry, SOUND.entry]
    undone = undo(service, stored.id, approved.revision, "bob")
    assert (undone.state, service.knowledge_version) == (DraftState.DRAFT, old)
    assert entries(service, triaged(service, UNKNOWN.replace("3005", "8").encode(), "3")) == [None]
    chosen = to_retriage(service, undone, jobs.progress(stored.id), tracking_of(service, stored.id))
    assert sorted(chosen) == [before, after]
    list(Retriage(service, chosen).change("bob"))
    assert entries(service, before, after) == [None, None]
    assert undo(service, stored.id, undone.revision, "cy").state is DraftState.APPLIED
    told = history_of(service, stored.id, 10)
    assert [change.action for change in told] == ["approve", "take back", "approve", "create"]


def test_a_tracked_draft_counts_new_incidents_and_answers_none(service: Service) -> None:
    triaged(service, UNKNOWN.encode(), "1")
    stored = sound(service)
    tracked = moved(service, stored, DraftState.TRACKING, "ann")
    shown = triaged(service, UNKNOWN.replace("3005", "7").encode(), "2")
    triaged(service, HEALTHY, "3")
    count_tracked(service)
    count_tracked(service)
    told = tracking_of(service, stored.id)
    assert ([one.incident_id for one in told.explains], told.looked_at) == ([shown], 2)
    assert entries(service, shown) == [None]
    assert SOUND.entry not in service.knowledge.entries
    with pytest.raises(InUse):
        drafts.change_draft(service, stored.id, tracked.revision, SOUND, "ann")
    with pytest.raises(InUse):
        drafts.remove_draft(service, stored.id, tracked.revision, "ann")
    assert moved(service, stored, DraftState.DRAFT).state is DraftState.DRAFT


def test_with_accounts_somebody_else_must_approve(service: Service) -> None:
    guarded = dataclasses.replace(service, settings=dataclasses.replace(service.settings, auth="tokens"))
    tokens.create(service.database, "ann", {Scope.WRITE, Scope.READ}, None, "root")
    stored = sound(service)
    assert moved(guarded, stored, DraftState.APPLIED, "ann").state is DraftState.APPLIED  # there is nobody else
    moved(guarded, stored, DraftState.DRAFT, "ann")
    tokens.create(service.database, "reader", {Scope.READ}, None, "root")
    _, bob = tokens.create(service.database, "bob", {Scope.ADMIN}, None, "root")
    with pytest.raises(AnotherMustApprove, match="ann wrote this draft"):
        moved(guarded, stored, DraftState.APPLIED, "ann")
    with pytest.raises(AnotherMustApprove):
        undo(guarded, stored.id, drafts.read_draft(service, stored.id).revision, "ann")
    assert moved(guarded, stored, DraftState.TRACKING, "ann").state is DraftState.TRACKING
    assert moved(guarded, stored, DraftState.APPLIED, "bob").state is DraftState.APPLIED
    moved(guarded, stored, DraftState.DRAFT, "ann")
    tokens.revoke(service.database, bob.id, "root")
    assert moved(guarded, stored, DraftState.APPLIED, "ann").state is DraftState.APPLIED


def test_a_draft_with_problems_or_an_old_revision_is_refused(service: Service) -> None:
    stored, _ = drafts.create_draft(service, dataclasses.replace(SOUND, title_en=""), None, "ann")
    for state in (DraftState.TRACKING, DraftState.APPLIED):
        with pytest.raises(BadInput, match="fix the problems"):
            moved(service, stored, state)
    fixed, _ = drafts.change_draft(service, stored.id, 1, SOUND, "ann")
    with pytest.raises(EditedMeanwhile):
        move_draft(service, stored.id, 1, DraftState.APPLIED, "bob")
    assert undo(service, stored.id, fixed.revision, "ann").draft.title_en == ""
    with pytest.raises(BadInput, match="nothing to undo"):
        undo(service, sound_other(service).id, 1, "ann")


def sound_other(service: Service) -> StoredDraft:
    return drafts.create_draft(service, dataclasses.replace(SOUND, entry="ourdata.other"), None, "ann")[0]


def test_another_server_and_the_next_start_use_it_too(service: Service, settings: Settings) -> None:
    other = open_service(settings, lambda *_: None, working=False)
    moved(service, sound(service), DraftState.APPLIED)
    assert adopt_learned(other)
    assert not adopt_learned(other)
    assert not adopt_learned(service)
    assert other.knowledge_version == service.knowledge_version
    close_service(other)
    later = open_service(settings, lambda *_: None, working=False)
    assert later.knowledge_version == service.knowledge_version
    assert entries(later, triaged(later, UNKNOWN.encode(), "1")) == [SOUND.entry]
    close_service(later)


@pytest.mark.slow
def test_maintenance_adopts_drafts_approved_on_another_server_and_counts_tracked_ones(
    service: Service, settings: Settings
) -> None:
    other = open_service(settings, lambda *_: None, working=False)
    triaged(service, UNKNOWN.encode(), "1")
    upkeep = Maintenance(other)
    first, tracked = sound(service), moved(service, sound_other(service), DraftState.TRACKING)
    moved(service, first, DraftState.APPLIED)
    shown = triaged(service, UNKNOWN.replace("3005", "7").encode(), "2")
    upkeep.run_round()
    assert other.knowledge_version == service.knowledge_version
    assert other.settled.wait(60)  # its groups were looked at with the new entry
    counted = tracking_of(other, tracked.id)
    assert [one.incident_id for one in (*counted.takes, *counted.beside)] == [shown]
    close_service(other)


@pytest.mark.slow
def test_processes_that_run_have_the_new_knowledge_with_the_next_log(tmp_path: Path) -> None:
    service = open_service(Settings(data_dir=tmp_path, workers=1), lambda *_: None, working=False)
    assert entries(service, triaged(service, UNKNOWN.encode(), "1")) == [None]
    moved(service, sound(service), DraftState.APPLIED)
    later = triaged(service, UNKNOWN.replace("3005", "7").encode(), "2")
    assert entries(service, later) == [SOUND.entry]
    verdict = read_incident(service, later).verdict
    assert verdict is not None
    assert verdict.knowledge == service.knowledge.digest
    close_service(service)


def test_entries_that_do_not_load_any_more_do_not_prevent_a_start(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    moved(service, sound(service), DraftState.APPLIED)
    monkeypatch.setattr("torchtriage.services.learned_folder.yaml_of", lambda *_: "id: ourdata.shard-too-short\n")
    later = open_service(settings, lambda *_: None, working=False)
    assert SOUND.entry not in later.knowledge.entries
    assert "skipped, because it does not load: ourdata/shard-too-short.yaml" in caplog.text
    close_service(later)


def test_an_entry_that_cannot_be_used_is_not_shown_as_in_use(service: Service, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "a").mkdir(parents=True)
    (own / "a/b.yaml").write_text("id: [", encoding="utf-8")
    broken = dataclasses.replace(
        service, settings=dataclasses.replace(service.settings, knowledge_dirs=(own,)), folders=service.folders
    )
    stored = sound(broken)
    with pytest.raises(BadInput, match="do not load now"):
        moved(broken, stored, DraftState.APPLIED)
    assert drafts.read_draft(broken, stored.id).state is DraftState.DRAFT
    Maintenance(broken).run_round()  # goes on with all else


def test_groups_of_the_failure_continue_under_the_new_entry(service: Service) -> None:
    service.settled.set()
    before = triaged(service, UNKNOWN.encode(), "1")
    moved(service, sound(service), DraftState.APPLIED)
    assert not service.settled.is_set()  # until it is known where its group belongs, nobody is told of a new one
    list(Retriage(service, [before]).change("bob"))
    after = triaged(service, UNKNOWN.replace("job", "work").encode(), "2")
    groups = [read_incident(service, incident).group for incident in (before, after)]
    assert groups[0] is not None
    assert groups[1] is not None
    assert groups[0].id == "1"


def test_the_patch_is_one_that_git_applies(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    from torchtriage.domain.entry import Text

    text = yaml_of(SOUND, Text(SAYS, ""))
    at = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)
    patch = new_file_patch("knowledge_base/ourdata/x.yaml", text, "Explain: 分片 short", "Ann <O'x> 中", at)
    (tmp_path / "x.patch").write_text(patch, encoding="utf-8")

    def git(*command: str) -> str:
        known = ["git", "-c", "user.name=t", "-c", "user.email=t@x", *command]
        return subprocess.run(known, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("am", "x.patch")
    assert (tmp_path / "knowledge_base/ourdata/x.yaml").read_text(encoding="utf-8") == text
    assert git("log", "--format=%s|%ad", "--date=iso").strip() == "Explain: 分片 short|2026-05-01 09:00:00 +0000"


def test_out_of_memory_is_still_out_of_memory(service: Service) -> None:
    moved(service, sound(service), DraftState.APPLIED)
    assert entries(service, triaged(service, OUT_OF_MEMORY, "1")) == ["cuda.oom"]
