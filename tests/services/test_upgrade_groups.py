"""What people decided about groups outlives signs, entries and rules of fingerprints that changed; on both databases,
from the databases that earlier releases left behind (tests/releases).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.releases.make import log
from tests.releases.unpacking import unpack
from tests.services.logs import upload
from tests.yaml_files import read_yaml
from torchtriage.causality import fingerprint
from torchtriage.domain.group import Group, GroupFilter, GroupStatus
from torchtriage.domain.incident import IncidentFilter, Job
from torchtriage.errors import TriageError
from torchtriage.knowledge import BUILT_IN
from torchtriage.services import outbox
from torchtriage.services.accept import accept
from torchtriage.services.engine_runner import KnownRun, Triaged
from torchtriage.services.fingerprint_upgrade import FingerprintUpgrade
from torchtriage.services.groups import list_groups, read_group, unsettled
from torchtriage.services.incidents import list_incidents, read_incident
from torchtriage.services.retriage import Retriage
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings

DEADLINE = 120  # seconds
NOTE = "known: the big batch of the nightly run"
# The groups of tests/releases/make.py, in the order in which they were made.
NIGHTLY, ENCODE, DECODE, STEP, EVALUATE, ODD, BLUE = (str(number) for number in range(1, 8))


@pytest.fixture(params=("0.1.0", "0.2.0"))
def release(request: pytest.FixtureRequest) -> str:
    """A release whose data directory is upgraded."""
    return str(request.param)


@contextmanager
def opened(folder: Path, database_url: str, **options: Any) -> Iterator[Service]:
    told: dict[str, Any] = {"webhook_url": "http://127.0.0.1:9/", "allow_private_calls": True}
    settings = Settings(data_dir=folder, database_url=database_url, workers=0, **told | options)
    service = open_service(settings, lambda *_: None, working=False)
    try:
        yield service
    finally:
        close_service(service)


def write_entry(folder: Path, name: str, sign: str, match: str) -> None:
    """Writes an entry like the built-in one for GPU memory, with another name and one sign."""
    entry = read_yaml(BUILT_IN / "cuda" / "oom.yaml")
    entry |= {"id": f"cuda.{name}", "signs": [{"regex": sign}], "cases": [], "examples": {"match": [match]}}
    path = folder / "cuda" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(entry, allow_unicode=True), encoding="utf-8")


@pytest.fixture
def database_url(empty_database_url: str) -> str:
    """A release's tables and rows are put into it."""
    return empty_database_url


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Knowledge in which GPU memory that ran out has two entries, by the size that was asked for."""
    folder = tmp_path_factory.mktemp("knowledge")
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 "
    write_entry(folder, "oom", "nobody prints this any more", "nobody prints this any more")
    write_entry(folder, "oom-large", r"CUDA out of memory\. Tried to allocate [\d.]+ GiB", f"{message}GiB")
    write_entry(folder, "oom-small", r"CUDA out of memory\. Tried to allocate [\d.]+ MiB", f"{message}MiB")
    return folder


def come(service: Service, number: int, place: str, size: str = "2.00 GiB", cluster: str = "green") -> Group:
    """Returns the group of a new incident, as it is then."""
    job = Job(job_id=str(number), user="ann", cluster=cluster)
    incident = accept(service, job, [upload(log(number, place, size))]).incident_id
    triage_incident(service, incident)
    group = read_incident(service, incident).group
    assert group is not None
    return read_group(service, group.id)


def retriage(service: Service) -> int:
    doing = Retriage(service)
    for _ in doing.change("ann"):
        pass
    return doing.changed


def members(service: Service, group: str) -> set[str | None]:
    """Returns the entries of a group's incidents."""
    found = list_incidents(service, IncidentFilter(group=group), 100).items
    return {incident.entry for incident in found}


def told(service: Service) -> list[str]:
    return [item.kind for item in outbox.list_outbox(service).items]


def check_decisions(service: Service, more: int = 0) -> None:
    """What was decided in the release holds; `more` incidents of the nightly run came since."""
    nightly = read_group(service, NIGHTLY)
    assert (nightly.status, nightly.owner, nightly.note) == (GroupStatus.IGNORED, "ann", NOTE)
    assert nightly.count >= 17 + more
    encode = read_group(service, ENCODE)
    assert (encode.owner, encode.note, encode.merged) == ("bo", "both are the tokenizer's", (DECODE,))
    blue = read_group(service, BLUE)
    assert (blue.status, blue.note) == (GroupStatus.IGNORED, "blue has small cards")
    assert read_group(service, ODD).muted_until is not None


def test_an_upgrade_of_an_earlier_release_keeps_all_decisions(tmp_path: Path, database_url: str, release: str) -> None:
    unpack(release, tmp_path, database_url)
    with opened(tmp_path, database_url) as service:
        check_decisions(service, more=3)
        assert not service.settled.is_set()
        assert unsettled(service) > 0
        assert len(list_incidents(service, IncidentFilter(), 100).items) == 33
        FingerprintUpgrade(service).run()
        assert service.settled.is_set()
        assert unsettled(service) == 0
        check_decisions(service, more=3)
        assert told(service) == []


@pytest.mark.slow
def test_decisions_outlive_an_entry_that_is_renamed_and_split(
    tmp_path: Path, database_url: str, release: str, renamed: Path
) -> None:
    unpack(release, tmp_path, database_url)
    with opened(tmp_path, database_url, knowledge_dirs=(renamed,)) as service:
        FingerprintUpgrade(service).run()
        check_decisions(service)
        assert come(service, 100, "model.py forward").id == NIGHTLY
        assert come(service, 101, "text.py decode").id == ENCODE
        assert come(service, 102, "optim.py step", cluster="blue").id == BLUE
        assert come(service, 103, "optim.py step").id == STEP
        assert come(service, 104, "eval.py evaluate").id == EVALUATE
        assert come(service, 105, "odd").id == ODD
        small = come(service, 106, "model.py forward", "512.00 MiB")
        assert (small.came_from, small.status, small.count) == (NIGHTLY, GroupStatus.OPEN, 1)
        assert told(service) == []
        assert come(service, 107, "new.py never_seen").came_from is None
        assert told(service) == ["new"]
        assert retriage(service) == 31
        check_decisions(service, more=1)
        assert read_group(service, NIGHTLY).count == 18
        assert members(service, NIGHTLY) == {"cuda.oom-large"}
        assert (read_group(service, small.id).count, members(service, small.id)) == (4, {"cuda.oom-small"})
        assert told(service) == ["new"]


def test_decisions_outlive_new_rules_of_fingerprints(
    tmp_path: Path, database_url: str, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack(release, tmp_path, database_url)
    with opened(tmp_path, database_url) as service:
        FingerprintUpgrade(service).run()
    monkeypatch.setattr(fingerprint, "VERSION", "v2")
    with opened(tmp_path, database_url) as service:
        groups = {group.id for group in list_groups(service, GroupFilter()).items}
        assert retriage(service) == 33
        check_decisions(service, more=3)
        assert {group.id for group in list_groups(service, GroupFilter()).items} == groups
        old, new = read_group(service, NIGHTLY).fingerprints
        assert (old[:3], new[:3]) == ("v1:", "v2:")
        assert old[3:] == new[3:]
        assert come(service, 101, "text.py decode").id == ENCODE
        assert come(service, 102, "optim.py step", cluster="blue").id == BLUE
        assert told(service) == []
        assert (read_group(service, old).id, read_group(service, new).id) == (NIGHTLY, NIGHTLY)


@pytest.mark.slow
def test_incidents_received_before_the_check_find_their_group_too(
    tmp_path: Path, database_url: str, release: str, renamed: Path
) -> None:
    unpack(release, tmp_path, database_url)
    with opened(tmp_path, database_url, knowledge_dirs=(renamed,)) as service:
        early = [come(service, 200 + number, "model.py forward") for number in range(2)][-1]
        blue = come(service, 210, "optim.py step", cluster="blue")
        green = come(service, 211, "optim.py step")
        small = come(service, 212, "model.py forward", "512.00 MiB")
        new = come(service, 213, "new.py never_seen")
        assert {group.id for group in (early, blue, new)}.isdisjoint({NIGHTLY, BLUE, STEP})
        assert told(service) == ["new"] * 4
        assert not outbox.send_one(service)  # nobody is told yet
        FingerprintUpgrade(service).run()
        assert read_group(service, early.id).id == NIGHTLY
        check_decisions(service, more=2 + 3)
        assert read_group(service, BLUE).count == 3
        assert (read_group(service, green.id).id, read_group(service, STEP).count) == (STEP, 4)
        assert read_group(service, small.id).came_from == NIGHTLY
        assert [item.group for item in outbox.list_outbox(service).items] == [new.id]
        assert outbox.claim(service, outbox.list_outbox(service).items[0].due_at) is not None
        assert len(list_incidents(service, IncidentFilter(group=early.id), 100).items) == 22


class Stopping:
    """A triager that has the look at groups stopped while it answers for the second time."""

    def __init__(self, service: Service) -> None:
        self.triager, self.asked = service.triager, 0
        self.looking = FingerprintUpgrade(dataclasses.replace(service, triager=self))  # type: ignore[arg-type]

    def changed(self, known: list[KnownRun]) -> list[Triaged | TriageError | None]:
        self.asked += 1
        if self.asked == 2:
            self.looking.stop()
        return self.triager.changed(known)


def test_a_stopped_check_of_groups_continues_where_it_was(tmp_path: Path, database_url: str, release: str) -> None:
    unpack(release, tmp_path, database_url)
    with opened(tmp_path, database_url) as service:
        every = unsettled(service)
        first = Stopping(service)
        first.looking.run(patient=True)
        assert (first.asked, unsettled(service)) == (2, every - 2)
        assert not service.settled.is_set()
    with opened(tmp_path, database_url) as service:
        second = FingerprintUpgrade(service)
        second.start()
        assert service.settled.wait(DEADLINE)
        second.stop()
        assert unsettled(service) == 0
    with opened(tmp_path, database_url) as service:
        assert service.settled.is_set()  # there is nothing left to look at
