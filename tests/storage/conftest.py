"""A database with the tables that the migrations make, and a store of logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from torchtriage.storage.blobs import BlobStore
from torchtriage.storage.database import Database


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url)
    yield made
    made.close()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "logs"), tmp_path)
