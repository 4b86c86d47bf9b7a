import pytest

from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.loader import load


@pytest.fixture(scope="session")
def engine() -> Engine:
    return Engine(load([BUILT_IN]))
