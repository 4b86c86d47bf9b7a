"""Drafts that add a case to an entry: which stored incidents they answer, and what a retriage does with these."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from tests.drafts import UNKNOWN
from tests.services.logs import HEALTHY, triaged
from torchtriage.domain.back_test import BackTest, ShownIn
from torchtriage.domain.draft import Draft, DraftState, DraftStep, StoredDraft
from torchtriage.domain.incident import Job, StoredLog, VerdictKey
from torchtriage.errors import BadInput
from torchtriage.knowledge.drafted_entry import rough_entry_of
from torchtriage.services import drafts
from torchtriage.services.back_test import BackTestJobs, counted, specific_cases
from torchtriage.services.draft_approval import move_draft, to_retriage, tracking_of, undo
from torchtriage.services.engine_runner import DraftResult
from torchtriage.services.incidents import read_incident
from torchtriage.services.retriage import Difference, Retriage
from torchtriage.services.retriage_job import RetriageJobs, Stage
from torchtriage.services.service import Service
from torchtriage.storage import retriage_reads
from torchtriage.storage.retriage_reads import TriagedIncident

ENTRY = "storage.output-path"
KEPT = ("explained", ENTRY)


def failing(message: str) -> bytes:
    return UNKNOWN.replace(UNKNOWN.splitlines()[-1], f"[rank2]: {message}").encode()


LOCKED = failing("FileExistsError: [Errno 17] File exists: 'frobnicator.lock'")
OUTPUT = failing("FileExistsError: [Errno 17] File exists: 'frobnicator.out'")
CASE = Draft(
    entry=f"{ENTRY}/frobnicator-lock",
    sign=r"FileExistsError: \[Errno 17\] File exists: 'frobnicator\.lock'",
    says_en="Another run of the frobnicator left its lock.",
    says_zh="上一次 frobnicator 运行留下了锁文件。",
    steps=(DraftStep("Remove the lock.", "删除锁文件。"), DraftStep(), DraftStep()),
    source="incident 1, 2026-11-29",
    example=LOCKED.decode().partition("lr 0.0003\n[")[2].strip().join(["[", ""]),
    near_miss="FileExistsError: [Errno 17] File exists: 'frobnicator.out'",
)
SPOOL = dataclasses.replace(CASE, entry=f"{ENTRY}/spool", sign=r"Not a directory: '/spool/")
IN_SPOOL = failing("NotADirectoryError: [Errno 20] Not a directory: '/spool/a'")


@pytest.fixture
def jobs(service: Service) -> Iterator[BackTestJobs]:
    made = BackTestJobs(service)
    yield made
    made.close()


def case_of(service: Service, incident: str) -> str | None:
    verdict = read_incident(service, incident).verdict
    assert verdict is not None
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == ENTRY
    return verdict.answer.case if verdict.answer else None


def back_tested(jobs: BackTestJobs, service: Service, draft: Draft) -> tuple[StoredDraft, BackTest]:
    stored, _ = drafts.create_draft(service, draft, None, "ann")
    jobs.start(stored.id, "ann")
    jobs.wait()
    return stored, jobs.progress(stored.id)


@pytest.mark.slow
def test_from_a_back_test_to_stored_answers_and_back(jobs: BackTestJobs, service: Service) -> None:
    incident, other = triaged(service, LOCKED, "1"), triaged(service, OUTPUT, "2")
    group = read_incident(service, incident).group
    stored, tested = back_tested(jobs, service, CASE)
    assert tested.counts == {"overrides": 1}
    assert tested.overrides == (ShownIn(incident, "explained", ENTRY, "exists-race"),)
    applied = move_draft(service, stored.id, 1, DraftState.APPLIED, "bob")
    chosen = to_retriage(service, applied, tested, tracking_of(service, stored.id))
    assert chosen == [incident]
    shown = Retriage(service, [incident, other])
    there = Difference(incident, KEPT, KEPT, None, ("exists-race", "frobnicator-lock"))
    assert (list(shown.preview()), there.only_answer) == ([there], True)
    assert (shown.looked_at, shown.found, shown.reanswered) == (2, [incident], 1)
    assert case_of(service, incident) == "exists-race"
    assert list(Retriage(service, chosen).change("bob")) == [there]
    assert [case_of(service, one) for one in (incident, other)] == ["frobnicator-lock", "exists-race"]
    assert read_incident(service, incident).group == group
    jobs.start(stored.id, "ann")
    jobs.wait()
    assert jobs.progress(stored.id).counts == {}  # it is answered by the case already
    undone = undo(service, stored.id, applied.revision, "bob")
    chosen = to_retriage(service, undone, tested, tracking_of(service, stored.id))
    assert chosen == [incident]  # and not all others of the entry
    back = Difference(incident, KEPT, KEPT, None, ("frobnicator-lock", "exists-race"))
    assert list(Retriage(service, chosen).change("bob")) == [back]
    assert case_of(service, incident) == "exists-race"
    assert to_retriage(service, undone, tested, tracking_of(service, stored.id)) == []


@pytest.mark.slow
def test_a_case_that_takes_the_example_of_another_is_not_approved(service: Service) -> None:
    broad = dataclasses.replace(CASE, sign=r"FileExistsError: \[Errno 17\]", near_miss="FileExistsError: [Errno 13]")
    stored, checked = drafts.create_draft(service, broad, None, "ann")
    assert checked.sound  # as only its own example is read while one types
    for state in (DraftState.TRACKING, DraftState.APPLIED):
        with pytest.raises(
            BadInput, match="problems of the draft first: another case would lose its example: streaming-shared-memory"
        ):
            move_draft(service, stored.id, 1, state, "bob")
    assert drafts.read_draft(service, stored.id).state is DraftState.DRAFT


def test_the_background_counts_and_applies_them(jobs: BackTestJobs, service: Service) -> None:
    incident = triaged(service, LOCKED, "1")
    stored, _ = back_tested(jobs, service, CASE)
    move_draft(service, stored.id, 1, DraftState.APPLIED, "bob")
    retriages = RetriageJobs(service)
    retriages.start_preview("bob")
    retriages.wait()
    told = retriages.progress
    assert (told.stage, told.found, told.reanswered) == (Stage.FOUND, 1, 1)
    assert told.differences[0].cases == ("exists-race", "frobnicator-lock")
    retriages.apply("bob")
    retriages.wait()
    assert (retriages.progress.changed, case_of(service, incident)) == (1, "frobnicator-lock")


def test_a_general_answer_is_refined(jobs: BackTestJobs, service: Service) -> None:
    incident = triaged(service, IN_SPOOL, "1")
    triaged(service, HEALTHY, "2")
    general = case_of(service, incident)
    _, tested = back_tested(jobs, service, SPOOL)
    assert (tested.counts, tested.changed) == ({"refines": 1}, (incident,))
    assert tested.refines == (ShownIn(incident, "explained", ENTRY, general),)


def test_a_tracked_case_is_compared_with_the_current_answer(service: Service) -> None:
    from torchtriage.services.draft_tracking import count_tracked

    stored, checked = drafts.create_draft(service, CASE, None, "ann")
    assert checked.sound
    move_draft(service, stored.id, 1, DraftState.TRACKING, "ann")
    incident = triaged(service, LOCKED, "1")
    count_tracked(service)
    assert tracking_of(service, stored.id).overrides == (ShownIn(incident, "explained", ENTRY, "exists-race"),)


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (("explained", ENTRY, "cannot-write-there"), (ENTRY, "frobnicator-lock"), "refines"),
        (("explained", ENTRY, ""), (ENTRY, "frobnicator-lock"), "refines"),
        (("explained", ENTRY, None), (ENTRY, "frobnicator-lock"), "refines"),
        (("explained", ENTRY, "exists-race"), (ENTRY, "frobnicator-lock"), "overrides"),
        (("explained", ENTRY, "frobnicator-lock"), (ENTRY, "frobnicator-lock"), None),
        (("explained", ENTRY, "exists-race"), (ENTRY, "exists-race"), None),
        (("explained", "cuda.oom", "frobnicator-lock"), ("cuda.oom", "frobnicator-lock"), None),
        (("explained", "cuda.oom", "any"), (ENTRY, "frobnicator-lock"), "takes"),
        (("unexplained", None, ""), (ENTRY, "frobnicator-lock"), "explains"),
        (("healthy", None, ""), (ENTRY, "frobnicator-lock"), "alarms"),
    ],
)
def test_each_incident_is_counted_once(
    service: Service, before: tuple[str, str | None, str | None], now: tuple[str, str], kind: str | None
) -> None:
    entry = rough_entry_of(CASE)
    kept = TriagedIncident("7", Job(), StoredLog("", ()), VerdictKey(before[0], before[1], "v1:a", before[2]))
    tried = DraftResult("explained", now[0], True, now[1])
    told = counted(BackTest(), entry, specific_cases(service, entry), [kept], [tried])
    assert told.counts == ({kind: 1} if kind else {})
    assert told.changed == (("7",) if kind else ())
    if kind:
        assert getattr(told, kind) == (ShownIn("7", before[0], before[1], before[2] or None),)


def as_stored_before(service: Service, incident: str, change: Any) -> None:
    """Has an incident be as a version left it that had no column for cases."""
    with service.database.transaction() as session:
        stored = session.execute(
            text("SELECT CAST(verdict AS TEXT) FROM incidents WHERE number = :of"), {"of": int(incident)}
        ).scalar_one()
        told = json.dumps(change(json.loads(stored)))
        of = {"of": int(incident), "told": told}
        cast = "CAST(:told AS JSON)" if session.get_bind().dialect.name == "postgresql" else ":told"
        session.execute(
            text(f"UPDATE incidents SET \"case\" = NULL, knowledge = 'older', verdict = {cast} WHERE number = :of"), of
        )


def key_of(service: Service, incident: str) -> VerdictKey | None:
    with service.database.reading() as session:
        return retriage_reads.some(session, [int(incident)])[0].key


def without_answer(verdict: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in verdict.items() if name not in ("answer", "form")}


def test_the_case_of_an_earlier_version_is_read_from_its_verdict(service: Service) -> None:
    incident = triaged(service, LOCKED, "1")
    before = key_of(service, incident)
    assert before is not None
    assert before.case == "exists-race"
    as_stored_before(service, incident, lambda verdict: verdict)
    assert key_of(service, incident) == before
    assert list(Retriage(service).preview()) == []
    as_stored_before(service, incident, lambda verdict: verdict | {"answer": verdict["answer"] | {"case": None}})
    assert key_of(service, incident) == dataclasses.replace(before, case="")
    (there,) = Retriage(service).preview()
    assert (there.cases, there.only_answer) == (("", "exists-race"), True)


def test_if_the_case_is_unknown_only_chosen_incidents_get_an_answer(service: Service) -> None:
    incident = triaged(service, LOCKED, "1")
    as_stored_before(service, incident, without_answer)
    assert key_of(service, incident) == dataclasses.replace(key_of(service, incident), case=None)  # type: ignore[type-var]
    everything = Retriage(service)
    assert (list(everything.preview()), everything.looked_at) == ([], 1)
    (there,) = Retriage(service, [incident]).change("ann")
    assert (there.cases, there.only_answer) == ((None, "exists-race"), True)
    assert case_of(service, incident) == "exists-race"
    assert list(Retriage(service, [incident]).preview()) == []


def test_a_verdict_that_is_damaged_has_no_known_case(service: Service) -> None:
    incident = triaged(service, LOCKED, "1")
    as_stored_before(service, incident, lambda _: [1])
    key = key_of(service, incident)
    assert key is not None
    assert (key.entry, key.case) == (ENTRY, None)
