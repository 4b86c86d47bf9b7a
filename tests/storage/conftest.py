"""A database with the tables that the migrations make, and values to put into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from torchtriage.storage.blobs import BlobStore
from torchtriage.storage.database import Database
from torchtriage.storage.schema_upgrade import upgrade


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    upgrade(database_url)
    made = Database(database_url)
    yield made
    made.close()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "logs"), tmp_path)
