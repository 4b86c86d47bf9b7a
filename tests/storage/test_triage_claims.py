from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from tests.storage import values
from tests.storage.statements import counted_statements
from torchtriage.domain.incident import State
from torchtriage.storage import incidents, triage_claims, verdicts
from torchtriage.storage.database import Database

HOUR = timedelta(hours=1)


def due(database: Database, at: timedelta) -> list[str]:
    """Returns what waits so long after START."""
    with database.transaction() as session:
        return [incident for incident, _ in triage_claims.waiting(session, values.START + at)]


def lose(database: Database, incident: str, at: timedelta) -> int:
    """Begins a try that never comes back -> which one it is, 0 where it was not its turn."""
    with database.transaction() as session:
        claimed = triage_claims.claim(session, [incident], values.START + at)
        return claimed[incident].tries if incident in claimed else 0


def test_a_claimed_incident_counts_as_waiting_until_it_is_final(database: Database) -> None:
    with database.transaction() as session:
        incident, other = values.added(session), values.added(session, "2")
    assert lose(database, incident, HOUR) == 1
    assert due(database, HOUR) == [other, incident]  # what was lost before comes after what was not
    with database.transaction() as session:
        assert incidents.ended(session, [incident, other, "77"]) == ["77"]
        assert verdicts.save_failure(session, incident, "no", values.START)
        assert incidents.ended(session, [incident, other]) == [incident]
    assert due(database, HOUR) == [other]


def test_a_returned_try_does_not_count(database: Database) -> None:
    with database.transaction() as session:
        incident = values.added(session)
        for _ in range(2 * triage_claims.MAX_TRIES):
            assert triage_claims.claim(session, [incident], values.START)[incident].tries == 1
            triage_claims.hand_back(session, incident)
        assert incidents.read(session, incident).state is State.RECEIVED


def test_an_incident_that_was_lost_often_is_tried_less_and_less_often(database: Database) -> None:
    with database.transaction() as session:
        incident = values.added(session)
    at, moments = timedelta(0), []
    for tries in range(1, triage_claims.MAX_TRIES + 2):
        while lose(database, incident, at) != tries:
            assert due(database, at) == []
            at += timedelta(minutes=1)
        moments.append(at)
    assert moments[2] == timedelta(0)  # those of one bad start follow one another
    pauses = [later - earlier for earlier, later in pairwise(moments[2:-1])]
    assert pauses == sorted(pauses)
    assert 2 * HOUR < moments[-1] < 4 * HOUR  # the tries that it has reach over hours


def test_a_clock_that_was_set_back_does_not_delay_a_try(database: Database) -> None:
    with database.transaction() as session:
        incident = values.added(session)
    for _ in range(3):
        lose(database, incident, 48 * HOUR)
    assert due(database, 48 * HOUR) == []
    assert due(database, HOUR) == [incident]
    assert lose(database, incident, HOUR) == 4


def test_incidents_claimed_together_are_written_in_one_statement(database: Database) -> None:
    with database.transaction() as session:
        claimed = [values.added(session, str(at)) for at in range(5)]
    for _ in range(3):
        assert lose(database, claimed[0], timedelta(0))
    with database.transaction() as session, counted_statements(database) as statements:
        found = triage_claims.claim(session, claimed, values.START + HOUR)
    assert [found[incident].tries for incident in claimed] == [4, 1, 1, 1, 1]
    assert sum(statements[begin] for begin in statements if begin.startswith("UPDATE incidents")) == 2
    assert due(database, HOUR) == claimed[1:]  # what was lost so often waits longer
