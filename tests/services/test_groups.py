"""What people wrote to the other incidents of a group."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, triaged
from torchtriage.domain.incident import Feedback
from torchtriage.services.groups import notes_beside
from torchtriage.services.incidents import give_feedback, read_incident
from torchtriage.services.service import Service
from torchtriage.storage import feedback


def beside(service: Service, incident_id: str, most: int = 5) -> list[tuple[str, str | None]]:
    return [(other, said.note) for other, said in notes_beside(service, read_incident(service, incident_id), most)]


def test_notes_are_those_of_the_groups_other_incidents(service: Service) -> None:
    first, second, third = (triaged(service, OUT_OF_MEMORY, job) for job in "123")
    other = triaged(service, OUT_OF_MEMORY.replace(b"model.py", b"head.py"), "4")
    now = datetime.now(UTC)
    for incident_id, note in ((second, "a smaller batch"), (first, "another card"), (third, "own"), (other, "else")):
        give_feedback(service, incident_id, Feedback("right", "ann", now, None, note))
    give_feedback(service, first, Feedback("right", "bo", now))
    assert beside(service, third) == [(first, "another card"), (second, "a smaller batch")]
    assert beside(service, third, 1) == [(first, "another card")]
    assert beside(service, other) == beside(service, triaged(service, HEALTHY, "5")) == []


def test_only_the_latest_incidents_are_read(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (triaged(service, OUT_OF_MEMORY, job) for job in "123")
    for incident_id in (first, second):
        give_feedback(service, incident_id, Feedback("right", "ann", datetime.now(UTC), None, "a note"))
    monkeypatch.setattr(feedback, "LOOKED_AT", 1)
    assert beside(service, third) == [(second, "a note")]
