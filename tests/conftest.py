"""Fixtures that tests of several packages share.

A test with the fixture `database_url` runs twice, on SQLite and on a real Postgres; outside `storage/` the second run
is slow. A test with `page` runs in a real browser, which visits `live_server`.
"""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import structlog

from tests import browser as browsers
from tests import postgres as servers

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from torchtriage.settings import Settings

# No deadlines, because the machine is shared. Hypothesis uses the same examples each time.
hypothesis.settings.register_profile(
    "untimed", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]  # kinds of databases
# Layers above the one with all SQL. Their tests run on Postgres only in the slow suite.
ABOVE_SQL = [Path(__file__).parent / name for name in ("services", "web")]


def pytest_configure(config: pytest.Config) -> None:
    """Sets one cache folder for all processes of a run, separate from the user's own, so that each parses or compiles
    nothing twice. Also keeps Python's bytecode, even if the environment turns that off: otherwise a thousand processes
    would compile the package."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if "PYTEST_XDIST_WORKER" not in os.environ:  # xdist workers inherit the folder of the process that started them
        folder = tempfile.TemporaryDirectory(prefix="cache-")
        config.add_cleanup(folder.cleanup)
        os.environ["XDG_CACHE_HOME"] = folder.name


@pytest.hookimpl(tryfirst=True)  # before `-m` selects tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        on_postgres = "postgres" in (params.get("database_url"), params.get("empty_database_url"))
        if on_postgres and item.path.parent in ABOVE_SQL:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


def pytest_collection_finish() -> None:
    gc.freeze()  # modules and tests stay until the end, so exclude them from garbage collection


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Leaves bytes out of test names: compressed bytes contain the time, and all processes must use the same name."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def own_messages() -> Iterator[None]:
    """Restores the test run's logging after each test, because commands that tests run configure it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.contextvars.clear_contextvars()


@pytest.fixture(scope="session")
def postgres() -> Iterator[servers.PostgresServer]:
    """One Postgres server for the whole run."""
    programs = servers.find_programs()
    if programs is None:
        pytest.skip(servers.MISSING)
    with servers.PostgresServer(programs) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with all tables, to be copied."""
    from tests.prepared import migrated_sqlite

    return migrated_sqlite(tmp_path_factory.mktemp("migrated"))


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a new database with all tables and no rows, once per kind."""
    if request.param == "sqlite":
        from tests.prepared import put_database

        yield f"sqlite:///{put_database(request.getfixturevalue('migrated_sqlite'), tmp_path / 'triage.db')}"
    else:
        server: servers.PostgresServer = request.getfixturevalue("postgres")
        with server.database(migrated=True) as url:
            yield url


@pytest.fixture(params=KINDS)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a new database without tables, once per kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'triage.db'}"
    else:
        server: servers.PostgresServer = request.getfixturevalue("postgres")
        with server.database() as url:
            yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the whole run. A test uses `page`, or makes contexts with other sizes and color schemes."""
    problem = browsers.problem()
    if problem:
        pytest.skip(problem)
    from playwright.sync_api import sync_playwright  # imported here because it takes a third of a second

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browsers.find_chromium(), args=browsers.FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that shares no state with other tests."""
    with browser.new_context() as context:
        yield context.new_page()


@dataclass(frozen=True, slots=True)
class LiveServer:
    """A service that listens on a local port."""

    url: str
    settings: Settings


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[LiveServer]:
    """Runs the whole service on an empty data directory in a thread. `options` are further settings. Unless `workers`
    is set, it triages in threads, because each process would load the knowledge base."""
    import uvicorn  # imported here, so that tests of the engine do not wait for the web's imports

    from torchtriage.settings import Settings
    from torchtriage.web.app import create_app

    with socket.create_server(("127.0.0.1", 0)) as listening:
        settings = Settings(data_dir=folder, port=listening.getsockname()[1], **({"workers": 0} | options))
        server = uvicorn.Server(uvicorn.Config(create_app(settings), log_config=None))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the service did not start; its reason stands in the captured log"
                time.sleep(0.01)
            yield LiveServer(settings.base_url, settings)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def live_server(tmp_path: Path, migrated_sqlite: Path) -> Iterator[LiveServer]:
    from tests.prepared import one_engine

    with one_engine(migrated_sqlite), serving(tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[LiveServer]:
    """One service for all tests of a module. These tests must not count its content."""
    from tests.prepared import one_engine

    with one_engine(migrated_sqlite), serving(tmp_path_factory.mktemp("served")) as server:
        yield server
