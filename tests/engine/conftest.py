from collections.abc import Callable, Iterator

import pytest

from tests.built_in import built_in_engine
from tests.watched_rules import watched_rules
from torchtriage.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    return built_in_engine()


@pytest.fixture
def decided() -> Iterator[Callable[[], set[str]]]:
    """Gives a function that returns the names of the rules that decided in the test so far."""
    with watched_rules() as rules:
        yield lambda: {name for _, name in rules}
