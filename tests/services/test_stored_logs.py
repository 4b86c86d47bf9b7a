"""Stored logs that are damaged, missing, or that no incident names any more."""

from __future__ import annotations

import io
import os
import random
import shutil
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client import generate_latest

from tests import full_disk
from tests.services.logs import HEALTHY, OUT_OF_MEMORY, kept, tar, triaged, upload, with_triager
from torchtriage.domain.incident import Incident, IncidentFilter, Job, State
from torchtriage.errors import NotFound, StorageUnavailable, UnreadableLog
from torchtriage.reading.unpack import Upload
from torchtriage.services import incidents, retriage, stored_logs
from torchtriage.services.accept import accept
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.services.triage_upload import triage_upload
from torchtriage.settings import Settings
from torchtriage.web.app import create_app


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[40] ^= 4
    path.write_bytes(data)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


WAYS: list[Callable[[Path], None]] = [truncated, zeroed, flipped, emptied, Path.unlink]
ways = pytest.mark.parametrize("spoil", WAYS)


def sent(service: Service, job: str, log: bytes = OUT_OF_MEMORY) -> Incident:
    """Returns the incident as it is once what is in the queue has been done, which these tests do by hand."""
    incident_id = accept(service, Job(job_id=job), [upload(log)]).incident_id
    return read(service, incident_id)


def read(service: Service, incident_id: str) -> Incident:
    return incidents.read_incident(service, incident_id)


@ways
def test_an_incident_without_its_log_fails_at_once_and_is_triaged_when_the_log_is_sent_again(
    service: Service, spoil: Callable[[Path], None]
) -> None:
    one, two, other = sent(service, "1"), sent(service, "2"), sent(service, "3", HEALTHY)
    (place,) = [path for path in kept(service) if one.log.sha256 in path.name]
    spoil(place)
    for incident in (one, two, other):
        triage_incident(service, incident.id)
    why = "missing" if spoil is Path.unlink else "damaged"
    for incident in (one, two):
        failed = read(service, incident.id)
        assert failed.state is State.FAILED
        assert (failed.failure or "").startswith(f"the stored log is {why}: {one.log.sha256}")
    assert read(service, other.id).state is State.TRIAGED
    assert waiting(service) == []  # nobody tries it again by itself

    again = accept(service, Job(job_id="1"), [upload(OUT_OF_MEMORY)])
    assert (again.new, again.incident.state, again.incident.failure) == (False, State.RECEIVED, None)
    assert waiting(service) == [one.id, two.id]
    for incident_id in (one.id, two.id):
        triage_incident(service, incident_id)
        assert read(service, incident_id).state is State.TRIAGED
    assert b"".join(service.blobs.chunks(one.log.sha256)) == OUT_OF_MEMORY
    assert len(kept(service)) == 2


def waiting(service: Service) -> list[str]:
    wanted = IncidentFilter(state=State.RECEIVED)
    return sorted(incident.id for incident in incidents.list_incidents(service, wanted).items)


@ways
def test_another_job_with_the_same_log_repairs_it_too(service: Service, spoil: Callable[[Path], None]) -> None:
    first = triaged(service, OUT_OF_MEMORY, "1")
    (place,) = kept(service)
    spoil(place)
    lost = sent(service, "2", OUT_OF_MEMORY)  # puts it right before anybody saw the damage
    assert b"".join(service.blobs.chunks(lost.log.sha256)) == OUT_OF_MEMORY
    spoil(place)
    triage_incident(service, lost.id)
    assert read(service, lost.id).state is State.FAILED
    third = sent(service, "3", OUT_OF_MEMORY)
    for incident in (lost, third):
        triage_incident(service, incident.id)
        assert read(service, incident.id).state is State.TRIAGED
    assert read(service, first).state is State.TRIAGED


def test_a_failure_of_another_kind_stays_when_its_log_is_sent_again(service: Service) -> None:
    def refuse(*_: object) -> None:
        raise UnreadableLog("it can't be read")

    incident = sent(service, "1")
    triage_incident(with_triager(service, refuse), incident.id)
    failed = read(service, incident.id)
    assert failed.state is State.FAILED
    assert sent(service, "1") == failed


def test_a_log_that_was_restored_is_triaged_by_retriage(service: Service) -> None:
    incident = sent(service, "1")
    (place,) = kept(service)
    whole = place.read_bytes()
    zeroed(place)
    triage_incident(service, incident.id)
    (stays,) = retriage.Retriage(service).change("ann")
    assert (stays.problem or "").startswith("the stored log is damaged: ")
    place.write_bytes(whole)
    list(retriage.Retriage(service).change("ann"))
    assert read(service, incident.id).state is State.TRIAGED


def test_the_queue_retries_incidents_that_failed_without_their_log(settings: Settings) -> None:
    spoiled: list[Path] = []

    def work(service: Service, incident_id: str) -> None:
        if not spoiled:
            spoiled.extend(kept_names(service))
            zeroed(*spoiled)
        triage_incident(service, incident_id)

    service = open_service(settings, work)
    try:
        incident_id = accept(service, Job(job_id="1"), [upload(OUT_OF_MEMORY)]).incident_id
        wait_for(service, incident_id, State.FAILED)
        under_way = service.queue.find(incident_id)
        if under_way is not None:
            under_way.result(timeout=300)
        assert accept(service, Job(job_id="1"), [upload(OUT_OF_MEMORY)]).incident_id == incident_id
        wait_for(service, incident_id, State.TRIAGED)
    finally:
        close_service(service)


def wait_for(service: Service, incident_id: str, state: State) -> None:
    deadline = time.monotonic() + 300
    while read(service, incident_id).state is not state:
        assert time.monotonic() < deadline, read(service, incident_id)
        time.sleep(0.02)


def test_all_stored_logs_are_read_and_the_bad_ones_named(service: Service) -> None:
    whole = sent(service, "0", HEALTHY)
    spoiled: dict[str, tuple[str, ...]] = {}
    for number, spoil in enumerate(WAYS, 1):
        incident = sent(service, str(number), b"run %d\n" % number + OUT_OF_MEMORY)
        same = sent(service, f"{number} again", b"run %d\n" % number + OUT_OF_MEMORY)
        (place,) = [path for path in kept(service) if incident.log.sha256 in path.name]
        spoil(place)
        spoiled[incident.log.sha256] = (incident.id, same.id)
    bundle = accept(service, Job(), [upload(tar({"a.log": HEALTHY, "b.log": b"step 1\n"}))]).incident
    other, another = (file.sha256 for file in bundle.log.files)
    assert other == whole.log.sha256
    place = next(path for path in kept(service) if another in path.name)
    place.write_bytes(next(path for path in kept(service) if other in path.name).read_bytes())  # whole, and another's
    spoiled[another] = (bundle.id,)

    found = list(stored_logs.check(service.database, service.blobs))
    assert len(found) == 7
    assert {bad.sha256: bad.incidents for bad in found if bad} == spoiled
    assert sum("is missing" in bad.why for bad in found if bad) == 1
    assert any("do not match its checksum" in bad.why for bad in found if bad)


def test_a_log_is_deleted_only_after_its_row_is_durably_deleted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident = sent(service, "1")
    remove = service.blobs.remove
    removed: list[str] = []

    def look(sha256: str) -> None:
        with pytest.raises(NotFound):
            read(service, incident.id)  # in a transaction of its own
        removed.append(sha256)
        remove(sha256)

    monkeypatch.setattr(service.blobs, "remove", look)
    incidents.forget_incident(service, incident.id, "ann")
    assert removed == [incident.log.sha256]
    assert kept(service) == []


def test_a_log_that_can_not_be_removed_now_is_swept_later(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    incident = sent(service, "1")
    (place,) = kept(service)
    place.unlink()
    place.mkdir()  # no file can be removed in its place
    incidents.forget_incident(service, incident.id, "ann")
    assert f"incident {incident.id} was deleted; its log stays" in caplog.text
    with pytest.raises(NotFound):
        read(service, incident.id)
    place.rmdir()
    left_behind(service, OUT_OF_MEMORY)
    assert stored_logs.sweep(service) == 1
    assert kept(service) == []


def left_behind(service: Service, log: bytes, days: float = 2) -> Path:
    """Returns a stored log without an incident, put there so many days ago, as it is where a row could not be kept."""
    with service.blobs.writing() as writer:
        writer.write(log)
        writer.finish()
        service.blobs.keep([writer])
    (place,) = (path for path in kept(service) if writer.sha256 in path.name)
    then = time.time() - days * 86400
    os.utime(place, (then, then))
    return place


def test_logs_that_no_incident_names_are_swept(service: Service) -> None:
    incident = sent(service, "1")
    (named,) = kept(service)
    os.utime(named, (0, 0))
    old, young = left_behind(service, b"old\n"), left_behind(service, b"young\n", days=0.5)
    stray = named.parent / "notes.txt"
    stray.touch()
    assert stored_logs.sweep(service) == 1
    assert kept(service) == sorted([named, young, stray])
    assert not old.exists()
    assert read(service, incident.id).log.sha256 in named.name


def test_the_sweep_takes_no_log_of_an_upload_under_way(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is there and its row is not yet, when all that is old is removed."""
    record, swept = service.upload_commits.put, []

    def put(*arguments: Any) -> Any:
        (place,) = kept_names(service)
        os.utime(place, (0, 0))  # as if it lay there for long
        swept.append(stored_logs.sweep(service))
        return record(*arguments)

    monkeypatch.setattr(service.upload_commits, "put", put)
    incident = sent(service, "1")
    assert swept == [1]
    assert b"".join(service.blobs.chunks(incident.log.sha256)) == OUT_OF_MEMORY


def kept_names(service: Service) -> list[Path]:
    return [path for path in kept(service) if path.suffix == ".zst"]


@pytest.mark.slow
def test_many_uploads_and_sweeps_at_the_same_time_lose_nothing(service: Service) -> None:
    stopping = threading.Event()

    def sweep() -> None:
        while not stopping.is_set():
            found, _ = stored_logs.unnamed(service, datetime.now(UTC) + timedelta(days=9))  # however young
            stored_logs.remove(service, found)

    def send(number: int) -> None:
        for turn in range(8):
            incident = sent(service, f"{number}-{turn}", b"run %d\n" % (number // 2))
            assert b"".join(service.blobs.chunks(incident.log.sha256)) == b"run %d\n" % (number // 2)
            if number % 2:
                incidents.forget_incident(service, incident.id, "ann")

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(send, range(4)))
    finally:
        stopping.set()
        sweeper.join()
    assert {place.name[:64] for place in kept_names(service)} == {
        incident.log.sha256 for incident in incidents.list_incidents(service, IncidentFilter()).items
    }


def test_logs_next_to_a_database_that_does_not_know_them_stay(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(30):
        left_behind(service, b"run %d\n" % number)
    assert stored_logs.sweep(service) == 0
    assert len(kept(service)) == 30
    why = "30 of 30 stored logs belong to no incident of this database"
    assert f"sweep removes no stored log: {why}" in caplog.text
    assert service.counters.held_back == {"logs": why}
    assert b'torchtriage_held_back{what="logs"} 30.0' in generate_latest(service.counters.registry)
    found, total = stored_logs.unnamed(service)
    assert (stored_logs.remove(service, found), total) == (30, 30)  # as the command does it
    assert stored_logs.sweep(service) == 0
    assert service.counters.held_back == {}


def test_a_full_disk_deletes_no_log_and_refuses_with_503(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with full_disk.tmpfs(tmp_path / "data", 8) as data, full_disk.tmpfs(tmp_path / "temporary", 1) as temporary:
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        settings = Settings(data_dir=data, workers=0)
        service = open_service(settings, triage_incident)
        with TestClient(create_app(settings, service)) as client:

            def ask(method: str, path: str, content: bytes = b"") -> tuple[int, str | None]:
                answer = client.request(method, path, content=content)
                return answer.status_code, answer.headers.get("Retry-After")

            noise = random.Random(1).randbytes(1_500_000).hex().encode()
            zipped = io.BytesIO()
            with zipfile.ZipFile(zipped, "w") as archive:
                archive.writestr("run.log", noise + b"\n" + OUT_OF_MEMORY)
            for path in ("/api/v1/incidents", "/api/v1/triage"):
                assert ask("POST", path, zipped.getvalue()) == (503, "5")
            address = client.post("/api/v1/incidents", content=OUT_OF_MEMORY).headers["Location"]
            before = kept(service)

            filling = full_disk.fill(data)
            assert ask("DELETE", address) == (503, "5")
            assert ask("POST", "/api/v1/incidents", noise) == (503, "5")
            assert ask("POST", "/api/v1/triage", noise) == (503, "5")
            assert client.get(f"{address}/log").json()["total"] == 7
            assert [path for path in kept(service) if path != filling] == before

            filling.unlink()
            assert ask("DELETE", address) == (204, None)
            assert kept(service) == []
            assert ask("POST", "/api/v1/incidents", OUT_OF_MEMORY) == (201, None)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_deleted_folder_of_uploads_is_made_again(service: Service, when: str) -> None:
    incoming = service.blobs.incoming.folder.parent

    def chunks() -> Iterator[bytes]:
        yield OUT_OF_MEMORY
        if when == "meanwhile":
            shutil.rmtree(incoming)

    if when == "before":
        shutil.rmtree(incoming)
        incident = accept(service, Job(), [Upload("log", chunks())]).incident
        assert b"".join(service.blobs.chunks(incident.log.sha256)) == OUT_OF_MEMORY
        shutil.rmtree(incoming)
        assert triage_upload(service, [upload(OUT_OF_MEMORY)], "en").outcome == "explained"
    else:
        with pytest.raises(StorageUnavailable):
            accept(service, Job(), [Upload("log", chunks())])
    assert accept(service, Job(), [upload(HEALTHY)]).new
