import pytest

from torchtriage.engine import Engine
from torchtriage.knowledge.cache import cache_folder
from torchtriage.matching.misspelled_exceptions import ExceptionNames
from torchtriage.matching.patterns import Patterns


@pytest.fixture(scope="module")
def spelling(engine: Engine) -> ExceptionNames:
    return ExceptionNames(Patterns(engine.knowledge, cache_folder()))


def test_slips_of_letters_are_reported(spelling: ExceptionNames) -> None:
    assert spelling.misspelling("torch.distributed.elastic.multiprocesing.errors.ChildFailedError: x") == (
        "multiprocesing",
        "multiprocessing",
    )


@pytest.mark.parametrize(
    "name",
    [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
        "torch.cuda.OutOfMemoryError",
        "shop.orders.errors.ChildFailedError",
        "shop.orders.errors.BasketError",
        "no name at all",
    ],
)
def test_other_names_are_not_slips(spelling: ExceptionNames, name: str) -> None:
    assert spelling.misspelling(name) is None
