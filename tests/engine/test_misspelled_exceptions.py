import pytest

from torchtriage.engine import Engine
from torchtriage.matching.misspelled_exceptions import Spelling
from torchtriage.matching.patterns import Patterns


@pytest.fixture(scope="module")
def spelling(engine: Engine) -> Spelling:
    return Spelling(Patterns(engine.knowledge))


def test_slips_of_letters_are_told(spelling: Spelling) -> None:
    assert spelling.slip("torch.distributed.elastic.multiprocesing.errors.ChildFailedError: x") == (
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
def test_other_names_are_no_slips(spelling: Spelling, name: str) -> None:
    assert spelling.slip(name) is None
