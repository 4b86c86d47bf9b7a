from __future__ import annotations

from datetime import timedelta

from tests.storage import values
from torchtriage.domain.incident import IncidentFilter, Job
from torchtriage.storage import incidents, new_incidents
from torchtriage.storage.database import Database
from torchtriage.storage.new_incidents import Received


def arrived(content: str, at: int = 0, **job: str) -> Received:
    return Received(Job(**job), values.stored(content), values.START + timedelta(seconds=at))  # type: ignore[arg-type]


def test_many_incidents_are_stored_at_once_each_with_its_own_values(database: Database) -> None:
    these = [arrived(f"log {number}", number, job_name=f"job{number}") for number in range(30)]
    with database.transaction() as session:
        added = new_incidents.add(session, these)
    assert all(new for _, new in added)
    with database.reading() as session:
        for one, (incident_id, _) in zip(these, added, strict=True):
            incident = incidents.read(session, incident_id)
            assert (incident.job, incident.log, incident.received_at) == (one.job, one.log, one.at)
        found = incidents.listed(session, IncidentFilter(q="job17"), 9, None).items
    assert [incident.id for incident in found] == [added[17][0]]


def test_only_the_first_of_equal_requests_is_new(database: Database) -> None:
    with database.transaction() as session:
        (before,) = new_incidents.add(session, [arrived("a", job_id="1")])
        added = new_incidents.add(
            session,
            [arrived("b", job_id="1"), arrived("a", 9, job_id="1"), arrived("b", 7, job_id="1", user="ann")],
        )
        assert added == [(added[0][0], True), (before[0], False), (added[0][0], False)]
        assert incidents.read(session, added[0][0]).received_at == values.START


def test_no_logs_make_no_incidents(database: Database) -> None:
    with database.transaction() as session:
        assert new_incidents.add(session, []) == []
