import pytest

from tests.built_in import built_in_engine
from torchtriage.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    return built_in_engine()
