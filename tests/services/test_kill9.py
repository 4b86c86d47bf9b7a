"""The short form of bench/kill9.py: a few kills, on each database."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.kill9 import torture
from tests import postgres as servers


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_what_was_acknowledged_survives_kills(tmp_path: Path, database: str) -> None:
    if database == "postgres" and servers.find_programs() is None:
        pytest.skip(servers.MISSING)
    wrong, told = torture(tmp_path, 5, postgres=database == "postgres")
    assert wrong == [], told
