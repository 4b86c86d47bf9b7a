from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.storage import values
from torchtriage.domain.incident import IncidentFilter, Job, State
from torchtriage.errors import NotFound
from torchtriage.storage import groups, incidents, triage_claims, verdicts
from torchtriage.storage.database import Database
from torchtriage.storage.pagination import BadCursor


def listed(database: Database, limit: int = 50, cursor: str | None = None, **wanted: object) -> list[str]:
    with database.reading() as session:
        page = incidents.listed(session, IncidentFilter(**wanted), limit, cursor)  # type: ignore[arg-type]
    return [incident.id for incident in page.items]


def test_an_incident_is_read_as_it_was_stored(database: Database) -> None:
    job = Job(job_id="123", cluster="blue", attempt=2, labels={"team": "视觉"}, started_at="2026-05-01T08:00:00Z")
    with database.transaction() as session:
        incident_id, new = values.add(session, job, values.stored("one", "two"))
    with database.reading() as session:
        incident = incidents.read(session, incident_id)
    assert new
    assert (incident.state, incident.job, incident.log) == (State.RECEIVED, job, values.stored("one", "two"))
    assert incident.received_at == values.START
    assert (incident.verdict, incident.group, incident.failure) == (None, None, None)


def test_a_verdict_is_read_as_it_was_stored(database: Database) -> None:
    with database.transaction() as session:
        incident_id = values.triaged(session)
    with database.reading() as session:
        incident = incidents.read(session, incident_id)
    assert incident.state is State.TRIAGED
    assert incident.verdict == values.verdict()
    assert incident.group is not None
    assert incident.group.count == 1


@pytest.mark.parametrize("unknown", ["0", "1", "-1", "999999999999999999", "9" * 30, "abc", "1 ", "١", ""])
def test_an_unknown_id_is_not_found(database: Database, unknown: str) -> None:
    with database.transaction() as session, pytest.raises(NotFound):
        incidents.read(session, unknown)
    with database.transaction() as session, pytest.raises(NotFound):
        incidents.remove(session, unknown)
    with database.transaction() as session, pytest.raises(NotFound):
        groups.read(session, unknown)


def test_the_same_log_of_the_same_job_and_attempt_is_the_same_incident(database: Database) -> None:
    log = values.stored()
    jobs = [
        Job(job_id="1"),
        Job(job_id="1", attempt=0, user="someone"),  # no attempt said is the first
        Job(job_id="1", attempt=1),
        Job(job_id="2"),
        Job(job_id="1", cluster="blue"),
        Job(),
    ]
    with database.transaction() as session:
        ids = [values.add(session, job, log)[0] for job in jobs]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 5


def test_the_same_request_at_the_same_moment_makes_one_incident(database: Database) -> None:
    together = threading.Barrier(8)

    def add(_: int) -> tuple[str, bool]:
        together.wait()
        with database.transaction() as session:
            return values.add(session, Job(job_id="7"), values.stored())

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(add, range(8)))
    assert len({incident for incident, _ in results}) == 1
    assert [new for _, new in results].count(True) == 1


def test_a_verdict_is_kept_once(database: Database) -> None:
    with database.transaction() as session:
        incident = values.triaged(session)
        assert not values.save(session, incident, values.verdict(), values.summary())
        assert not verdicts.save_failure(session, incident, "too late", values.START)
        assert not triage_claims.claim(session, [incident], values.START)
    with database.reading() as session:
        found = incidents.read(session, incident)
    assert found.group is not None
    assert (found.state, found.failure, found.group.count) == (State.TRIAGED, None, 1)


def test_incidents_are_filtered(database: Database) -> None:
    with database.transaction() as session:
        a = values.triaged(session, "a", 0, cluster="blue", user="ann")
        b = values.triaged(session, "b", 10, values.summary("v1:bb", entry="nccl.timeout", host="gpu-1"), user="bob")
        c = values.triaged(session, "c", 20, values.summary(None, outcome="healthy", entry=None), cluster="blue")
        d = values.added(session, "d", 30, user="ann")
        group = incidents.read(session, b).group
    assert group is not None
    assert listed(database) == [d, c, b, a]
    assert listed(database, cluster="blue") == [c, a]
    assert listed(database, user="ann") == [d, a]
    assert listed(database, user="ann", cluster="blue") == [a]
    assert listed(database, entry="nccl.timeout") == [b]
    assert listed(database, outcome="healthy") == [c]
    assert listed(database, host="gpu-1") == [b]
    assert listed(database, state=State.RECEIVED) == [d]
    assert listed(database, group=group.id) == [b]
    assert listed(database, group="nonsense") == []
    assert listed(database, since=values.START + timedelta(seconds=10)) == [d, c, b]
    assert listed(database, until=values.START + timedelta(seconds=10)) == [a]


def test_pages_hold_every_incident_once_while_new_ones_come(database: Database) -> None:
    with database.transaction() as session:
        ids = [values.added(session, str(i), i) for i in range(7)]
    seen: list[str] = []
    cursor: str | None = None
    for turn in range(10):
        with database.transaction() as session:
            page = incidents.listed(session, IncidentFilter(), 3, cursor)
            values.added(session, f"new {turn}", 100 + turn)
        seen += [incident.id for incident in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert seen == ids[::-1]


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "MS4y", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "é", "../..", "LTE"])
def test_a_made_up_cursor_is_refused(database: Database, cursor: str) -> None:
    with database.reading() as session, pytest.raises(BadCursor):
        incidents.listed(session, IncidentFilter(), 3, cursor)


def test_a_removed_incident_leaves_nothing(database: Database) -> None:
    with database.transaction() as session:
        kept = values.triaged(session, "same", job_id="1")
        gone = values.triaged(session, "same", job_id="2")
        other = values.triaged(session, "other")
        digest = values.stored("same").files[0].sha256
        assert incidents.remove(session, gone).digests == (digest,)
        assert incidents.unused(session, [digest]) == []
        assert incidents.remove(session, kept).digests == (digest,)
        assert incidents.unused(session, [digest]) == [digest]
    assert listed(database) == [other]
    assert listed(database, q="memory") == [other]


def test_an_incident_number_is_never_used_twice(database: Database) -> None:
    with database.transaction() as session:
        first = values.added(session)
        incidents.remove(session, first)
        assert values.added(session) != first


def test_old_incidents_are_found(database: Database) -> None:
    with database.transaction() as session:
        ids = [values.added(session, str(i), i) for i in range(5)]
        assert incidents.received_before(session, values.START + timedelta(seconds=3), 2) == ids[:2]


def test_a_log_may_have_more_files_than_a_database_holds_names(database: Database) -> None:
    digests = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(20_000)]
    with database.transaction() as one, database.reading() as other:
        incidents.lock_files(one, digests, shared=True)
        if not database.is_sqlite:  # there a transaction that writes is alone
            incidents.lock_files(other, digests, shared=True)


@pytest.mark.parametrize("shared", [True, False])
def test_nobody_accepts_a_file_that_is_being_deleted(database: Database, shared: bool) -> None:
    happened = []

    def count_on_it() -> None:
        with database.transaction() as session:
            incidents.lock_files(session, ["ab12"], shared=shared)
            happened.append("counted on")

    with database.transaction() as session:
        incidents.lock_files(session, ["cd34", "ab12"])
        thread = threading.Thread(target=count_on_it)
        thread.start()
        thread.join(0.3)  # long enough to fail where nothing is held
        happened.append("gone")
    thread.join()
    assert happened == ["gone", "counted on"]
