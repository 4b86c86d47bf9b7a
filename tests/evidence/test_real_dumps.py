"""Sets of real flight-recorder dumps with injected ranks, which are kept outside the repository."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.sources import open_path

# Each folder in it has the dumps of one run in `dumps`, and `case.json` with the injected ranks as `suspects`.
SETS = Path(os.environ.get("TORCHTRIAGE_DUMP_SETS", "/nonexistent"))


@pytest.mark.slow
@pytest.mark.skipif(not SETS.is_dir(), reason="TORCHTRIAGE_DUMP_SETS names no folder of dumps")
def test_exactly_the_injected_ranks_are_suspects(engine: Engine) -> None:
    known = {case.parent: json.loads(case.read_text())["suspects"] for case in sorted(SETS.glob("*/case.json"))}
    assert known
    found = {folder: list(engine.triage(open_path(folder / "dumps")).run.suspect_ranks) for folder in known}
    assert found == known
