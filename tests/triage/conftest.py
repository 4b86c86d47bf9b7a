import pytest

from app.knowledge import BUILT_IN
from app.knowledge.loader import load
from app.triage.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    return Engine(load([BUILT_IN]))
