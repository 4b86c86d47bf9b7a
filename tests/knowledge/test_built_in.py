from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.checks import problems
from torchtriage.knowledge.loader import load


def test_every_entry_is_proved_by_its_own_examples() -> None:
    assert problems(load([BUILT_IN])) == []
