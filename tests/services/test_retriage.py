from __future__ import annotations

import dataclasses
from typing import Any

from app.domain.access import Change
from app.domain.incident import Incident, Job
from app.services import access, incidents
from app.services.accept import accept
from app.services.retriage import Difference, Retriage
from app.services.service import Service
from app.services.triage_incident import triage_incident
from app.services.triager import Order, Triaged
from app.storage import verdicts
from app.storage.database import StorageUnavailable
from tests.services.logs import HEALTHY, OUT_OF_MEMORY, upload


def triaged(service: Service, content: bytes, job_id: str) -> str:
    incident_id = accept(service, Job(job_id=job_id), [upload(content)]).incident_id
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
        if found.finding.entry != "cuda.oom":
            return found
        root = found.verdict["root_cause"] | {"entry": "cuda.illegal-access"}
        verdict: dict[str, Any] = found.verdict | {"root_cause": root, "fingerprint": "v1:new"}
        return Triaged(verdict, dataclasses.replace(found.finding, entry="cuda.illegal-access", fingerprint="v1:new"))

    def why(self, order: Order, entry: str) -> dict[str, Any]:
        return self._triager.why(order, entry)

    def warm(self) -> None: ...

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


def wiser(service: Service, broken: str = "") -> Service:
    """-> the same service with other knowledge."""
    knowledge = dataclasses.replace(service.knowledge, digest="sha256:tomorrow")
    return dataclasses.replace(service, knowledge=knowledge, triager=Wiser(service, broken))


def entries(service: Service, *incident_ids: str) -> list[Any]:
    found: list[Incident] = [incidents.read_incident(service, incident_id) for incident_id in incident_ids]
    return [
        (known.verdict or {}).get("root_cause", {}) and known.verdict["root_cause"]["entry"]
        for known in found
        if known.verdict
    ]


def test_nothing_is_looked_at_twice_under_the_same_knowledge(service: Service) -> None:
    triaged(service, OUT_OF_MEMORY, "1")
    retriage = Retriage(service)
    assert list(retriage.look()) == []
    assert retriage.looked_at == 0
    retriage.close()


def test_it_shows_then_changes_and_remembers(service: Service) -> None:
    one, two, healthy = (
        triaged(service, log, job) for log, job in ((OUT_OF_MEMORY, "1"), (OUT_OF_MEMORY, "2"), (HEALTHY, "3"))
    )
    before = incidents.read_incident(service, one)
    later = wiser(service)
    retriage = Retriage(later)
    shown = list(retriage.look())
    after = ("explained", "cuda.illegal-access")
    assert shown == [Difference(known, ("explained", "cuda.oom"), after) for known in (one, two)]
    assert entries(service, one, two) == ["cuda.oom", "cuda.oom"]
    assert retriage.change("ann") == 2
    retriage.close()
    assert entries(service, one, two) == ["cuda.illegal-access"] * 2
    with service.database.reading() as session:
        assert verdicts.earlier(session, one) == [before.verdict]
        assert verdicts.earlier(session, healthy) == []
    group = incidents.read_incident(service, two).group
    assert group is not None
    assert group.count == 2
    assert before.group is not None
    assert group.id != before.group.id
    trail = access.changes(service.database, "incidents", 1).items
    assert [(change.by, change.action, change.detail) for change in trail] == [
        ("ann", "retriage", {"changed": 2, "of": 3})
    ]
    assert isinstance(trail[0], Change)


def test_what_was_interrupted_or_out_of_reach_is_found_again(service: Service) -> None:
    one, two = triaged(service, OUT_OF_MEMORY, "1"), triaged(service, OUT_OF_MEMORY + b"x\n", "2")
    broken = incidents.read_incident(service, two).log.files[0].sha256
    first = Retriage(wiser(service, broken))
    assert [difference.incident_id for difference in first.look()] == [one]
    assert (first.failed, first.change("ann")) == (1, 1)
    second = Retriage(wiser(service))
    assert [difference.incident_id for difference in second.look()] == [two]
    for retriage in (first, second):
        retriage.close()
