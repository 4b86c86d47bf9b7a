from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.running import NOBODY, Bench
from tests.conftest import LiveServer


@pytest.fixture
def alone(tmp_path: Path) -> Bench:
    """The client, with no service to reach."""
    return Bench(tmp_path, NOBODY)


@pytest.fixture
def bench(tmp_path: Path, live_server: LiveServer) -> Bench:
    """The client beside a service."""
    (tmp_path / "job").mkdir()
    return Bench(tmp_path / "job", live_server.url)
