"""A database with the tables that the migrations make, and values to put into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.storage.blobs import BlobStore
from app.storage.database import Database
from app.storage.upgrade import upgrade


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    upgrade(database_url)
    made = Database(database_url)
    yield made
    made.close()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "logs"), tmp_path)
