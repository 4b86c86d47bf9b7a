from __future__ import annotations

from datetime import UTC, datetime

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, triaged
from torchtriage.domain.incident import Feedback
from torchtriage.services.entry_history import entry_history
from torchtriage.services.incidents import forget_incident, give_feedback
from torchtriage.services.service import Service


def test_an_entry_knows_its_incidents_groups_and_what_people_said(service: Service) -> None:
    first, second = (triaged(service, OUT_OF_MEMORY, job) for job in ("1", "2"))
    triaged(service, HEALTHY, "3")
    now = datetime.now(UTC)
    give_feedback(service, first, Feedback("wrong", "ann", now, "data.missing-file", "it was the disk"))
    give_feedback(service, second, Feedback("right", "bo", now))
    give_feedback(service, second, Feedback("right", "chen", now, None, "a smaller batch"))
    found = entry_history(service, "cuda.oom", 7)
    assert (found.count, len(found.by_day), sum(found.by_day)) == (2, 7, 2)
    assert [incident.id for incident in found.incidents] == [second, first]
    assert [group.count for group in found.groups] == [2]
    assert (found.precision.right, found.precision.wrong) == (2, 1)
    assert [(incident, said.note) for incident, said in found.notes] == [
        (second, "a smaller batch"),
        (first, "it was the disk"),
    ]


def test_an_entry_that_was_never_seen_has_an_empty_history(service: Service) -> None:
    forget_incident(service, triaged(service, OUT_OF_MEMORY, "1"), "ann")
    for entry in ("cuda.oom", "nccl.timeout"):
        found = entry_history(service, entry, 3)
        assert (found.count, found.by_day, found.incidents, found.notes) == (0, (0, 0, 0), (), ())
