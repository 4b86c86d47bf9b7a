"""The processes that triage: which knowledge they have, and what becomes of a log whose process is killed."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, triaged, upload
from torchtriage.domain.entry import KnowledgeBase
from torchtriage.domain.incident import Incident, Job, State
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import BUILT_IN
from torchtriage.queue.subprocess_calls import CallFailed, NotStarted
from torchtriage.services.accept import accept
from torchtriage.services.engine_runner import InProcess, InProcesses, Order
from torchtriage.services.incidents import read_incident
from torchtriage.services.maintenance import Maintenance
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings

TIMEOUT = 120  # seconds, for a busy machine
MODEL = (BUILT_IN / "dataloader" / "shm-bus-error.yaml").read_text("utf-8")
BROKEN = "id: custom.broken\ntitle: {en: [\n"


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """A folder of knowledge beside the built-in one, with one entry."""
    folder = tmp_path / "overlay"
    (folder / "dataloader").mkdir(parents=True)
    (folder / "custom").mkdir()
    (folder / "dataloader" / "shm-bus-error.yaml").write_text(MODEL.replace("ran out of shared", "met our limit of"))
    return folder


@contextmanager
def opened(tmp_path: Path, overlay: Path, **more: Any) -> Iterator[Service]:
    settings = Settings(data_dir=tmp_path / "data", knowledge_dirs=(overlay,), **({"workers": 1} | more))
    service = open_service(settings, lambda *_: None, working=False)
    yield service
    close_service(service)


def of(service: Service, log: bytes, job: str) -> Incident:
    return read_incident(service, triaged(service, log, job))


def metric(service: Service) -> float | None:
    return service.counters.registry.get_sample_value("torchtriage_knowledge_broken")


@pytest.mark.slow
def test_an_entry_that_is_broken_while_the_service_runs_harms_no_triage(tmp_path: Path, overlay: Path) -> None:
    with opened(tmp_path, overlay) as service:
        (overlay / "custom" / "broken.yaml").write_text(BROKEN)
        incident = of(service, OUT_OF_MEMORY, "1")  # the process of this triage starts now
        assert (incident.state, incident.failure) == (State.TRIAGED, None)
        assert incident.verdict is not None
        assert incident.verdict.knowledge == service.knowledge.digest


@pytest.mark.slow
def test_all_processes_have_the_knowledge_that_the_service_began_with(tmp_path: Path, overlay: Path) -> None:
    with opened(tmp_path, overlay) as service:
        (overlay / "dataloader" / "shm-bus-error.yaml").write_text(MODEL)
        incident = of(service, b"RuntimeError: unable to open shared memory (shm)\n", "1")
        assert incident.verdict is not None
        assert incident.root_cause is not None
        assert incident.root_cause.title == "A DataLoader worker met our limit of memory"
        assert incident.verdict.knowledge == service.knowledge.digest


@pytest.mark.slow
def test_folders_that_cannot_be_loaded_are_reported_until_they_can(
    tmp_path: Path, overlay: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from fastapi.testclient import TestClient  # here, as each process of the others imports this file

    from torchtriage.web.app import create_app

    caplog.set_level(logging.INFO, "torchtriage.services.knowledge_reload")
    broken = overlay / "custom" / "broken.yaml"
    with opened(tmp_path, overlay, workers=0) as service:
        upkeep = Maintenance(service)
        upkeep.run_round()
        assert (metric(service), caplog.messages) == (0, [])
        broken.write_text(BROKEN)
        for _ in range(2):
            upkeep.run_round()
            assert metric(service) == 1
        (line,) = caplog.messages
        assert line.startswith(
            "cannot load the knowledge folders, keeping the loaded knowledge: custom/broken.yaml:3: "
        )
        browser = {"Sec-Fetch-Site": "same-origin"}
        with TestClient(create_app(service.settings, service), headers=browser) as client:
            for page in ("/settings", "/knowledge"):
                assert "the service keeps using the entries it has" in client.get(page).text
            assert "custom/broken.yaml:3: " in client.get("/settings").text
            assert "torchtriage_knowledge_broken 1.0" in client.get("/metrics").text
            broken.unlink()
            client.get("/settings?check=1")
            for page in ("/settings", "/knowledge"):
                assert "the service keeps using the entries it has" not in client.get(page).text
        assert caplog.messages[1:] == ["the knowledge folders load again"]


def test_a_service_does_not_start_with_broken_knowledge(tmp_path: Path, overlay: Path) -> None:
    (overlay / "custom" / "broken.yaml").write_text(BROKEN)
    with pytest.raises(KnowledgeError, match=r"custom/broken\.yaml:3: "), opened(tmp_path, overlay):
        pass


def fragile(settings: Settings, _: KnowledgeBase) -> Callable[..., Any]:
    """Returns what stands for the triage in each process: an order's `bytes` say how often its process is killed, as the
    kernel does it. The answer is how many others were under way at its end."""
    calls = settings.data_dir

    def run(_: str, order: Order) -> int:
        job = order.files[0][0]
        tries = len(list(calls.glob(f"{job}.try-*")))
        (calls / f"{job}.try-{tries}").touch()
        if tries < order.bytes:
            os.kill(os.getpid(), signal.SIGKILL)
        (calls / f"{job}.running").touch()
        time.sleep(0.05)
        (calls / f"{job}.running").unlink()
        return len(list(calls.glob("*.running")))

    return run


@pytest.fixture
def calling(tmp_path: Path) -> Iterator[Callable[[str, int], Any]]:
    with closing(InProcesses(Settings(data_dir=tmp_path, workers=3), KnowledgeBase({}, ""), fragile)) as triager:
        yield lambda job, killed: triager.run(Order(((job, "sha"),), killed))


@pytest.mark.slow
def test_a_triage_that_is_killed_is_tried_once_more_while_no_other_runs(calling: Callable[[str, int], Any]) -> None:
    with ThreadPoolExecutor(8) as pool:
        before = [pool.submit(calling, f"before-{number}", 0) for number in range(20)]
        killed = [pool.submit(calling, f"killed-{number}", 1) for number in range(3)]
        after = [pool.submit(calling, f"after-{number}", 0) for number in range(20)]
        assert [future.result(TIMEOUT) for future in killed] == [0, 0, 0]
        assert max(future.result(TIMEOUT) for future in before + after) > 0  # else there was nothing to be alone from


@pytest.mark.slow
def test_a_triage_that_is_killed_again_when_alone_fails_with_a_reason(calling: Callable[[str, int], Any]) -> None:
    with pytest.raises(CallFailed, match="was killed by SIGKILL, and once more when it ran alone"):
        calling("large", 2)
    assert calling("small", 0) == 0


def killed_once(settings: Settings, knowledge: KnowledgeBase) -> Callable[..., Any]:
    """Returns what a process of the triage calls; the first that is asked is killed as it begins."""
    triager = InProcess(settings, knowledge)

    def call(method: str, *arguments: Any) -> Any:
        if not (settings.data_dir / "killed").exists():
            (settings.data_dir / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return getattr(triager, method)(*arguments)

    return call


@pytest.mark.slow
def test_an_incident_survives_the_kill_of_its_triage(tmp_path: Path, overlay: Path) -> None:
    with opened(tmp_path, overlay, workers=0) as service:
        settings = replace(service.settings, workers=2)
        with closing(InProcesses(settings, service.knowledge, killed_once)) as triager:
            for number, log in enumerate((OUT_OF_MEMORY, HEALTHY)):
                incident = of(replace(service, triager=triager), log, str(number))
                assert (incident.state, incident.failure) == (State.TRIAGED, None)
            assert (settings.data_dir / "killed").exists()


def without_room(settings: Settings, knowledge: KnowledgeBase) -> Callable[..., Any]:
    """Returns the triage in processes that the kernel kills as they start, until there is room."""
    if not (settings.data_dir / "room").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    triager = InProcess(settings, knowledge)
    return lambda method, *arguments: getattr(triager, method)(*arguments)


@pytest.mark.slow
def test_an_incident_waits_if_no_process_starts(tmp_path: Path, overlay: Path) -> None:
    with opened(tmp_path, overlay, workers=0) as service:
        settings = replace(service.settings, workers=1)
        incident_id = accept(service, Job(), [upload(OUT_OF_MEMORY)]).incident_id
        with closing(InProcesses(settings, service.knowledge, without_room)) as triager:
            starved = replace(service, triager=triager)
            with pytest.raises(NotStarted, match=r"cannot start a triage process: .* was killed by SIGKILL"):
                triage_incident(starved, incident_id)
            assert read_incident(service, incident_id).state is State.RECEIVED
            (settings.data_dir / "room").touch()
            triage_incident(starved, incident_id)
        assert read_incident(service, incident_id).state is State.TRIAGED
