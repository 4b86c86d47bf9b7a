"""A service on a database of each kind; its triage runs when a test says so, or in its queue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.prepared import one_engine
from tests.slack import FakeSlack, fake_slack
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.settings import Settings


@pytest.fixture(scope="session", autouse=True)
def shared_engine(migrated_sqlite: Path) -> Iterator[None]:
    with one_engine(migrated_sqlite):
        yield


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with fake_slack() as running:
        yield running


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, database_url=database_url, max_log_bytes=1_000_000, workers=0)


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    """A service whose queue does nothing: what was accepted stays received."""
    opened = open_service(settings, lambda *_: None, working=False)
    yield opened
    close_service(opened)
