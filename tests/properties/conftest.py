from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.built_in import built_in_engine
from torchtriage.engine import Engine
from torchtriage.reading.sources import Run, from_bytes, open_path

Told: TypeAlias = tuple[str, str | None, str | None]


@pytest.fixture(scope="session")
def engine() -> Engine:
    return built_in_engine()


@pytest.fixture(scope="session")
def tell(engine: Engine) -> Callable[[bytes | Path | Run], Told]:
    """Returns outcome, entry and fingerprint of a log."""

    def told(log: bytes | Path | Run) -> Told:
        run = from_bytes(log) if isinstance(log, bytes) else open_path(log) if isinstance(log, Path) else log
        verdict = engine.triage(run)
        root = verdict.root_cause
        return verdict.outcome, root.entry if root else None, verdict.fingerprint

    return told
