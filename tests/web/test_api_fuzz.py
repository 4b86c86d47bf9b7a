"""The short form of bench/api_fuzz.py: a few questions to every route, made from the OpenAPI document."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.api_fuzz import ask_everything
from tests.conftest import LiveServer


@pytest.mark.slow
def test_every_answer_is_documented_and_none_is_a_5xx(live_server: LiveServer, tmp_path: Path) -> None:
    folder = tmp_path / "left"
    folder.mkdir()
    status, report = ask_everything(live_server.url, 2, 30, "fuzzing", folder)
    assert status == 0, report
    assert "20 passed" in report or "Tested:" in report
