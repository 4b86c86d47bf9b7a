from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import text

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, upload
from torchtriage.answer.explain_match import Why
from torchtriage.domain.access import AuditLine
from torchtriage.domain.draft import Draft, DraftCheck
from torchtriage.domain.entry import Entry, KnowledgeBase
from torchtriage.domain.incident import Job, State, VerdictKey
from torchtriage.errors import TriageError
from torchtriage.services import groups, incidents, tokens
from torchtriage.services.accept import accept
from torchtriage.services.engine_runner import DraftResult, InProcess, InProcesses, KnownRun, Order, Triaged
from torchtriage.services.retriage import Difference, Retriage
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage import verdicts
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.storage.database import StorageUnavailable


def triaged(service: Service, content: bytes, job_id: str, cluster: str | None = None) -> str:
    incident_id = accept(service, Job(job_id=job_id, cluster=cluster), [upload(content)]).incident_id
    triage_incident(service, incident_id)
    return incident_id


class Wiser:
    """Yesterday's triager, except that it knows another entry for one, and that some logs are out of its reach."""

    def __init__(self, service: Service, broken: str = "") -> None:
        self._triager, self._broken = service.triager, broken

    def run(self, order: Order) -> Triaged:
        if order.files[0][1] == self._broken:
            raise StorageUnavailable("not now")
        found = self._triager.run(order)
        if found.summary.entry != "cuda.oom":
            return found
        assert found.verdict.root_cause is not None
        root = dataclasses.replace(found.verdict.root_cause, entry="cuda.illegal-access")
        verdict = dataclasses.replace(found.verdict, root_cause=root, fingerprint="v1:new")
        return Triaged(verdict, dataclasses.replace(found.summary, entry="cuda.illegal-access", fingerprint="v1:new"))

    def changed(self, known: list[KnownRun]) -> list[Triaged | TriageError | None]:
        return [self._changed(one) for one in known]

    def _changed(self, known: KnownRun) -> Triaged | TriageError | None:
        try:
            found = self.run(known.order)
        except StorageUnavailable as error:
            return error
        told = found.summary
        key = VerdictKey(told.outcome, told.entry, told.fingerprint, told.case)
        return None if known.key and key.says_same_as(known.key) else found

    def why(self, order: Order, entry: str) -> Why:
        return self._triager.why(order, entry)

    def check_draft(self, draft: Draft, taken: tuple[str, ...] = (), whole: bool = True) -> DraftCheck:
        return self._triager.check_draft(draft, taken, whole)

    def try_entry(self, entry: Entry, known: list[KnownRun]) -> list[DraftResult | TriageError | None]:
        return self._triager.try_entry(entry, known)

    def use(self, knowledge: KnowledgeBase) -> None:
        self._triager.use(knowledge)

    def warm(self) -> None: ...

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


def wiser(service: Service, broken: str = "") -> Service:
    """Returns the same service with other knowledge."""
    knowledge = dataclasses.replace(service.knowledge, digest="sha256:tomorrow")
    return dataclasses.replace(service, knowledge=knowledge, triager=Wiser(service, broken))


def entries(service: Service, *incident_ids: str) -> list[Any]:
    found = [incidents.read_incident(service, incident_id) for incident_id in incident_ids]
    return [known.entry for known in found if known.verdict]


def changed(retriage: Retriage) -> int:
    for _ in retriage.change("ann"):
        pass
    return retriage.changed


def test_no_incident_is_triaged_twice_with_the_same_knowledge(service: Service) -> None:
    triaged(service, OUT_OF_MEMORY, "1")
    retriage = Retriage(service)
    assert list(retriage.preview()) == []
    assert retriage.looked_at == 0


def test_it_shows_the_changes_applies_them_and_keeps_old_verdicts(service: Service) -> None:
    one, two, healthy = (
        triaged(service, log, job) for log, job in ((OUT_OF_MEMORY, "1"), (OUT_OF_MEMORY, "2"), (HEALTHY, "3"))
    )
    before = incidents.read_incident(service, one)
    later = wiser(service)
    shown = Retriage(later)
    after = ("explained", "cuda.illegal-access")
    answer = before.verdict.answer if before.verdict else None
    case = answer.case if answer else None
    was = ("explained", "cuda.oom")
    assert list(shown.preview()) == [Difference(known, was, after, None, (case, case)) for known in (one, two)]
    assert shown.reanswered == 0
    assert (shown.looked_at, shown.found) == (3, [one, two])
    assert entries(service, one, two) == ["cuda.oom", "cuda.oom"]
    assert changed(Retriage(later, shown.found)) == 2
    assert entries(service, one, two) == ["cuda.illegal-access"] * 2
    with service.database.reading() as session:
        assert verdicts.earlier(session, one) == [before.verdict]
        assert verdicts.earlier(session, healthy) == []
    group = incidents.read_incident(service, two).group
    assert group is not None
    assert group.count == 2
    assert group == before.group  # all went to one: it is the same group under another fingerprint
    assert groups.read_group(service, group.id).entry == "cuda.illegal-access"
    trail = tokens.changes(service.database, ChangeFilter("incidents"), 1).items
    told = {"changed": 2, "of": 2, "knowledge": later.knowledge_version, "whole": True}
    assert [(change.by, change.action, change.detail) for change in trail] == [("ann", "retriage", told)]
    assert isinstance(trail[0], AuditLine)


def test_an_interrupted_one_is_in_the_audit_log_too(service: Service) -> None:
    for job in ("1", "2", "3"):
        triaged(service, OUT_OF_MEMORY, job)
    later = wiser(service)
    retriage = Retriage(later)
    changing = retriage.change("ann")
    next(changing)
    changing.close()  # type: ignore[attr-defined]  # a generator
    (change,) = tokens.changes(service.database, ChangeFilter("incidents"), 9).items
    assert (change.detail["changed"], change.detail["whole"]) == (1, False)
    assert changed(Retriage(later)) == 2
    assert changed(Retriage(later)) == 0  # which changes nothing, and is not told
    assert len(tokens.changes(service.database, ChangeFilter("incidents"), 9).items) == 2


def test_an_unchanged_incident_is_not_triaged_again(service: Service) -> None:
    triaged(service, OUT_OF_MEMORY, "1")
    triaged(service, HEALTHY, "2")
    for looked_at in (2, 1):  # the healthy one only once
        retriage = Retriage(wiser(service))
        list(retriage.preview())
        assert retriage.looked_at == looked_at


def test_an_unreadable_log_is_reported_and_triaged_later(service: Service) -> None:
    one, two = triaged(service, OUT_OF_MEMORY, "1"), triaged(service, OUT_OF_MEMORY + b"x\n", "2")
    broken = incidents.read_incident(service, two).log.files[0].sha256
    first = Retriage(wiser(service, broken))
    told = list(first.change("ann"))
    assert [(difference.incident_id, difference.problem) for difference in told] == [(one, None), (two, "not now")]
    assert (first.failed, first.changed, first.found) == (1, 1, [one])
    second = Retriage(wiser(service))
    assert [difference.incident_id for difference in second.preview()] == [two]


def test_incidents_of_a_split_group_do_not_change(service: Service) -> None:
    made = [triaged(service, OUT_OF_MEMORY, str(number), cluster=cluster) for number, cluster in enumerate("ab")]
    group = incidents.read_incident(service, made[0]).group
    assert group is not None
    groups.split_group(service, group.id, "cluster", "a", "ann")
    with service.database.transaction() as session:
        session.execute(text("UPDATE incidents SET knowledge = 'older'"))
    retriage = Retriage(service)
    assert list(retriage.preview()) == []
    assert retriage.looked_at == 2


def test_one_that_is_stopped_ends_and_the_next_continues(service: Service) -> None:
    triaged(service, OUT_OF_MEMORY, "1")
    retriage = Retriage(wiser(service))
    retriage.stop()
    assert list(retriage.preview()) == []
    assert len(list(Retriage(wiser(service)).preview())) == 1


DEADLY = b"this log ends whatever reads it\n"


def deadly(settings: Settings, knowledge: KnowledgeBase) -> Callable[..., Any]:
    """Returns what a process of the triage calls, except that one log kills it, as a bug in a C library would."""
    triager = InProcess(settings, knowledge)
    triage = triager._changed

    def changed(known: KnownRun) -> Triaged | None:
        if known.order.bytes == len(DEADLY):
            os.kill(os.getpid(), signal.SIGSEGV)
        return triage(known)

    triager._changed = changed  # type: ignore[method-assign]
    return lambda method, *arguments: getattr(triager, method)(*arguments)


@pytest.mark.slow
def test_a_log_that_kills_its_process_keeps_its_verdict_and_is_reported(service: Service) -> None:
    before, killer, after = (
        triaged(service, log, job) for log, job in ((HEALTHY, "1"), (DEADLY, "2"), (OUT_OF_MEMORY, "3"))
    )
    kept = incidents.read_incident(service, killer)
    with service.database.transaction() as session:
        session.execute(text("UPDATE incidents SET knowledge = 'older'"))
        session.execute(text("UPDATE incidents SET entry = NULL WHERE number = :of").bindparams(of=int(after)))
    with closing(InProcesses(dataclasses.replace(service.settings, workers=1), service.knowledge, deadly)) as triager:
        broken = dataclasses.replace(service, triager=triager)
        told = list(Retriage(broken).preview())
        assert [difference.incident_id for difference in told] == [killer, after]
        assert "SIGSEGV" in (told[0].problem or "")
        assert (told[0].after, told[1].problem) == (None, None)
        last = Retriage(broken)
        assert [difference.problem is None for difference in last.change("ann")] == [False, True]
        assert (last.changed, last.failed) == (1, 1)
    assert incidents.read_incident(service, killer) == kept
    assert entries(service, after) == ["cuda.oom"]
    assert incidents.read_incident(service, before).state is State.TRIAGED
