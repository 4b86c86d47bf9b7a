from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.running import NOBODY, Bench
from tests.conftest import LiveServer, serving
from tests.prepared import one_engine


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[LiveServer]:
    """One service for all tests: each reports as a user of its own."""
    with one_engine(migrated_sqlite), serving(tmp_path_factory.mktemp("service")) as server:
        yield server


@pytest.fixture
def alone(tmp_path: Path) -> Bench:
    """The client, with no service to reach."""
    return Bench(tmp_path, NOBODY)


@pytest.fixture
def bench(tmp_path: Path, service: LiveServer) -> Bench:
    """The client beside a service."""
    return Bench(tmp_path, service.url)
