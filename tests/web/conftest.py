"""The whole web application on an empty data directory, asked without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.prepared import one_engine
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

LIMIT = 1_000_000


@pytest.fixture(scope="session", autouse=True)
def shared_engine(migrated_sqlite: Path) -> Iterator[None]:
    with one_engine(migrated_sqlite):
        yield


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """On SQLite."""
    settings = Settings(data_dir=tmp_path, max_log_bytes=LIMIT, workers=0)
    with TestClient(create_app(settings), raise_server_exceptions=False) as asked:
        yield asked


@pytest.fixture
def both(tmp_path: Path, database_url: str) -> Iterator[TestClient]:
    """On SQLite and on Postgres in turn."""
    settings = Settings(data_dir=tmp_path, database_url=database_url, max_log_bytes=LIMIT, workers=0)
    with TestClient(create_app(settings), raise_server_exceptions=False) as asked:
        yield asked
