"""What filters can be set to: the values of what is stored, counted where the other filters stay set."""

from __future__ import annotations

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, upload
from torchtriage.domain.incident import IncidentFilter, Job
from torchtriage.services.accept import accept
from torchtriage.services.filter_values import values
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import triage_incident


def given(service: Service, log: bytes, **job: object) -> None:
    triage_incident(service, accept(service, Job(**job), [upload(log)]).incident_id)  # type: ignore[arg-type]


def test_each_filter_is_counted_as_if_it_were_not_set(service: Service) -> None:
    given(service, OUT_OF_MEMORY, job_id="1", user="ann", queue="gpu", labels={"team": "nlp", "tier": "a"})
    given(service, OUT_OF_MEMORY, job_id="2", user="bob", queue="gpu", image="night:7")
    given(service, HEALTHY, job_id="3", user="bob", queue="cpu")
    found = values(service, IncidentFilter(), {})
    assert found.looked_at == 3
    assert found.counts["user"] == {"bob": 2, "ann": 1}
    assert found.counts["queue"] == {"gpu": 2, "cpu": 1}
    assert found.counts["label"] == {"team:nlp": 1, "tier:a": 1}
    assert found.counts["image"] == {"night:7": 1}
    assert found.counts["owner"] == {"user": 2}
    assert found.counts["entry"] == {"cuda.oom": 2}
    assert "none" not in found.counts["retry"]
    of_bob = values(service, IncidentFilter(), {"user": "bob"})
    assert of_bob.counts["user"] == {"bob": 2, "ann": 1}
    assert of_bob.counts["queue"] == {"gpu": 1, "cpu": 1}
    failed = values(service, IncidentFilter(), {"user": "bob", "outcome": "failed"})
    assert failed.counts["queue"] == {"gpu": 1}
    assert failed.counts["outcome"] == {"explained": 1, "healthy": 1}


def test_words_narrow_what_is_counted(service: Service) -> None:
    given(service, OUT_OF_MEMORY, job_id="1", user="ann")
    given(service, HEALTHY, job_id="2", user="bob")
    assert values(service, IncidentFilter(q="memory"), {"q": "memory"}).counts["user"] == {"ann": 1}
