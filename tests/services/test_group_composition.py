"""Who and where a group hits beside all runs, and what came of its jobs."""

from __future__ import annotations

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, upload
from torchtriage.domain.incident import Job
from torchtriage.services.accept import accept
from torchtriage.services.group_composition import composition, later_attempts
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import triage_incident

WIDGET = b"""\
torch 2.6.0
Traceback (most recent call last):
  File "/home/ann/train.py", line 42, in <module>
    turn()
widgets.WidgetJammed: gear
"""


def given(service: Service, log: bytes, **job: object) -> str:
    incident = accept(service, Job(**job), [upload(log)]).incident_id  # type: ignore[arg-type]
    triage_incident(service, incident)
    return incident


def group_of(service: Service, incident: str) -> str:
    found = read_incident(service, incident).group
    assert found is not None
    return found.id


def test_a_bad_image_is_highlighted_and_a_property_of_all_runs_is_not(service: Service) -> None:
    bad = [given(service, OUT_OF_MEMORY, job_id=f"b{at}", user=f"u{at % 3}", image="night:7", queue="batch")
           for at in range(6)]  # fmt: skip
    for at in range(24):
        given(service, WIDGET, job_id=f"w{at}", user=f"u{at % 3}", image="night:6", queue="batch")
    found = composition(service, group_of(service, bad[0]))
    assert (found.runs, found.all_runs) == (6, 30)
    assert [(name, share.value) for name, share in found.standing_out] == [("image", "night:7")]
    image = found.parts["image"][0]
    assert (image.inside, image.known, image.everywhere, image.all_known) == (6, 6, 6, 30)
    assert 0 < image.chance < 1e-4
    assert "queue" not in found.parts  # the same everywhere, which tells nothing
    assert {share.value for share in found.parts["user"]} == {"u0", "u1", "u2"}
    assert found.values["queue"] == ("batch",)


def test_two_of_three_runs_are_too_few_to_highlight(service: Service) -> None:
    few = [given(service, OUT_OF_MEMORY, job_id=f"b{at}", image="night:7" if at else "old") for at in range(3)]
    for at in range(20):
        given(service, WIDGET, job_id=f"w{at}", image="night:6")
    found = composition(service, group_of(service, few[0]))
    assert found.parts["image"][0].inside == 2
    assert not found.enough
    assert found.standing_out == []


def test_versions_in_logs_are_compared(service: Service) -> None:
    first = given(service, OUT_OF_MEMORY.replace(b"step 1", b"torch 2.7.1\nstep 1"), job_id="1")
    given(service, WIDGET, job_id="2")
    known = read_incident(service, first).verdict
    assert known is not None
    assert known.run.versions["torch"] == "2.7.1"
    parts = composition(service, group_of(service, first)).parts
    assert [(share.value, share.everywhere, share.all_known) for share in parts["torch"]] == [("2.7.1", 1, 2)]


def test_the_next_attempt_is_found_by_number_or_else_by_time(service: Service) -> None:
    first = given(service, OUT_OF_MEMORY, job_id="1", cluster="blue", attempt=0)
    given(service, OUT_OF_MEMORY + b"other node\n", job_id="1", cluster="blue", attempt=0)  # another node, no retry
    again = given(service, OUT_OF_MEMORY + b"again\n", job_id="1", cluster="blue", attempt=1)
    given(service, WIDGET, job_id="1", cluster="green", attempt=2)  # another cluster's job of the same number
    well = given(service, HEALTHY, job_id="1", cluster="blue", attempt=2)
    other = given(service, OUT_OF_MEMORY, job_id="2")
    failed = given(service, WIDGET, job_id="2")
    alone = given(service, OUT_OF_MEMORY, job_id="3")
    given(service, OUT_OF_MEMORY + b"no id\n")
    found = {one.incident: (one.came, one.next) for one in later_attempts(service, group_of(service, first))}
    assert len(found) == 5
    assert found[first] == ("same", again)
    assert found[again] == ("healthy", well)
    assert found[other] == ("other", failed)
    assert found[alone] == ("unknown", None)


def test_a_group_without_incidents_has_no_composition(service: Service) -> None:
    found = composition(service, "77")
    assert (found.runs, found.all_runs, found.parts) == (0, 0, {})
    assert later_attempts(service, "77") == []
