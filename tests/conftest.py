"""Fixtures that tests of several packages share.

A test that takes `database_url` runs twice, on SQLite and on a real Postgres; above `storage/` the second is slow. A
test that takes `page` runs in a real browser; `live_server` is what it visits.
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

# Tests are never timed: the machine that runs them is shared. Their examples are the same each time.
hypothesis.settings.register_profile(
    "untimed", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]  # of databases
# Tests of layers above the one that holds all SQL: what they do on SQLite they do on Postgres in the slow suite.
ABOVE_SQL = [Path(__file__).parent / name for name in ("services", "web")]


def pytest_configure(config: pytest.Config) -> None:
    """One cache folder for all processes of a run and all that they start, which leave the user's own alone: what one
    of them parsed or compiled, none does again. Python keeps its bytecode too, also where the environment says not to:
    each of a thousand processes would compile the package, and each run all tests."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if "PYTEST_XDIST_WORKER" not in os.environ:  # those have the folder of the process that started them
        folder = tempfile.TemporaryDirectory(prefix="cache-")
        config.add_cleanup(folder.cleanup)
        os.environ["XDG_CACHE_HOME"] = folder.name


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
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
    gc.freeze()  # modules and tests stay until the end, so they are not searched for garbage


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes have no place in a name: packed ones hold the time, and all processes must know a test by one name."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def own_messages() -> Iterator[None]:
    """A command that a test runs sets up logging for its process; after the test, that of the test run comes back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.contextvars.clear_contextvars()


@pytest.fixture(scope="session")
def postgres() -> Iterator[servers.PostgresServer]:
    """One server for the whole run."""
    programs = servers.find_programs()
    if programs is None:
        pytest.skip(servers.MISSING)
    with servers.PostgresServer(programs) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a database with all tables, to be copied."""
    from tests.prepared import migrated_sqlite

    return migrated_sqlite(tmp_path_factory.mktemp("migrated"))


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A fresh database with all tables and no rows, of each kind in turn."""
    if request.param == "sqlite":
        from tests.prepared import put_database

        yield f"sqlite:///{put_database(request.getfixturevalue('migrated_sqlite'), tmp_path / 'triage.db')}"
    else:
        server: servers.PostgresServer = request.getfixturevalue("postgres")
        with server.database(migrated=True) as url:
            yield url


@pytest.fixture(params=KINDS)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A fresh database without tables, of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'triage.db'}"
    else:
        server: servers.PostgresServer = request.getfixturevalue("postgres")
        with server.database() as url:
            yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the whole run; a test takes `page`, or makes contexts with other sizes and colour schemes."""
    problem = browsers.problem()
    if problem:
        pytest.skip(problem)
    from playwright.sync_api import sync_playwright  # here, as it takes a third of a second

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browsers.find_chromium(), args=browsers.FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that shares nothing with another test's."""
    with browser.new_context() as context:
        yield context.new_page()


@dataclass(frozen=True, slots=True)
class LiveServer:
    """A service that listens on a port of this machine."""

    url: str
    settings: Settings


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[LiveServer]:
    """The whole service on an empty data directory, in a thread of its own. `options` are further settings.

    It triages in its own threads, where `workers` says nothing else: each process would load the knowledge base."""
    import uvicorn  # here, so that tests of the engine do not wait for the web's imports

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
    """One service for all tests of a module, which do not count what is in it."""
    from tests.prepared import one_engine

    with one_engine(migrated_sqlite), serving(tmp_path_factory.mktemp("served")) as server:
        yield server
