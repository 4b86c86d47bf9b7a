from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.conftest import LiveServer
from tests.conftest import serving as serving_triage
from tests.prepared import one_engine
from tests.watcher.api_server import TOKEN, ApiServer, serving
from torchtriage.client.torchtriage_client import Settings
from torchtriage.watcher.kubernetes_api import connected
from torchtriage.watcher.options import Options
from torchtriage.watcher.watcher import Watcher

TIMEOUT = 300.0  # seconds, after which what should have happened has not


def until(what: Callable[[], Any]) -> Any:
    """Returns the first true answer; fails where there is none for a long time."""
    deadline = time.monotonic() + TIMEOUT
    while not (answer := what()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return answer


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[LiveServer]:
    """One service for all tests: each has a cluster of its own name."""
    with one_engine(migrated_sqlite), serving_triage(tmp_path_factory.mktemp("service")) as server:
        yield server


@pytest.fixture(scope="session")
def asking() -> Iterator[httpx2.Client]:
    """One client for all tests: to make one takes more than ten requests do."""
    with httpx2.Client(timeout=TIMEOUT) as client:
        yield client


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with serving() as server:
        yield server


class Bench:
    """A watcher's folder, a cluster, and the service that it reports to."""

    def __init__(self, folder: Path, api: ApiServer, url: str, name: str, asking: httpx2.Client) -> None:
        self.folder, self.api, self.url, self.name, self.asking = folder, api, url, name, asking
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": api.url}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }))  # fmt: skip

    def options(self, **more: Any) -> Options:
        data = self.folder / "data"
        client = Settings(
            more.pop("url", self.url), "", str(data / "spool"), str(data), 0, 60, 256 << 20, True, {"cluster": self.name}, []
        )  # fmt: skip
        quick: dict[str, Any] = {
            "settle": 8.0,
            "quiet": 0.6,
            "tick": 0.05,
            "port": 0,
            "host": "127.0.0.1",
            "users": ("owner",),
        }
        return Options(client, data, **(quick | more))

    @contextmanager
    def watching(self, **more: Any) -> Iterator[Watcher]:
        """A watcher that works while this is open."""
        watcher = Watcher(self.options(**more), connected(self.kubeconfig, None))
        thread = threading.Thread(target=watcher.run)
        thread.start()
        try:
            until(lambda: watcher.port or not thread.is_alive())
            until(lambda: self.asking.get(f"http://127.0.0.1:{watcher.port}/readyz").status_code == 200)
            yield watcher
        finally:
            watcher.stop()
            thread.join()
            self.api.interrupt()

    def incidents(self, count: int) -> list[dict[str, Any]]:
        """Returns what the service got of this cluster, the oldest first, once it is so many and all have their verdict."""

        def found() -> list[dict[str, Any]]:
            items = self.asking.get(f"{self.url}/api/v1/incidents", params={"cluster": self.name}).json()["items"]
            done = [item for item in items if item["state"] == "triaged"]
            return done if len(done) >= count else []

        got = until(found)
        assert len(got) == count, [item["job"] for item in got]
        return sorted(got, key=lambda item: item["job"]["attempt"])

    def full(self, incident: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = self.asking.get(f"{self.url}/api/v1/incidents/{incident['id']}").json()
        return told

    def handled(self, watcher: Watcher, outcome: str) -> float:
        """Returns how many attempts came to an outcome so far."""
        return watcher.counters.registry.get_sample_value(
            "torchtriage_watcher_reports_total", {"outcome": outcome}) or 0  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path, api: ApiServer, service: LiveServer, asking: httpx2.Client) -> Bench:
    return Bench(tmp_path, api, service.url, tmp_path.name, asking)
