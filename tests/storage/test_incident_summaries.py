"""Rows of lists tell the same as the incidents that they are of."""

from __future__ import annotations

from sqlalchemy import update

from tests.storage import values
from torchtriage.domain.incident import IncidentFilter, State
from torchtriage.domain.incident_summary import summary_of
from torchtriage.storage import incident_summaries, incidents
from torchtriage.storage.database import Database
from torchtriage.storage.tables import IncidentRow


def test_a_row_has_the_values_of_its_incident(database: Database) -> None:
    with database.transaction() as session:
        values.triaged(session, "one", 1)
        values.added(session, "two", 2, job_name="night", labels={"team": "nlp"})
        rows = incident_summaries.listed(session, IncidentFilter(), 9, None).items
        whole = incidents.listed(session, IncidentFilter(), 9, None).items
    assert len(rows) == 2
    assert list(rows) == [summary_of(incident) for incident in whole]


def test_a_damaged_incident_is_marked_and_the_others_are_shown(database: Database) -> None:
    with database.transaction() as session:
        number = int(values.triaged(session, "one", 1))
        values.triaged(session, "two", 2)
        damaged = {"root_cause": {"entry": 7, "title": "x", "confidence": "likely"}}
        session.execute(update(IncidentRow).where(IncidentRow.number == number).values(verdict=damaged))
        rows = incident_summaries.listed(session, IncidentFilter(), 9, None).items
    assert [row.state for row in rows] == [State.TRIAGED, State.FAILED]
    assert "its stored verdict is damaged (entry: " in (rows[1].failure or "")
