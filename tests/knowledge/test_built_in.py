import yaml

from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.checks import problems
from torchtriage.knowledge.loader import load


def test_every_entry_is_proved_by_its_own_examples() -> None:
    assert problems(load([BUILT_IN])) == []


def test_no_pattern_of_a_sign_is_longer_than_200_characters() -> None:
    for path in sorted(BUILT_IN.glob("[a-z]*/*.yaml")):
        signs = yaml.safe_load(path.read_bytes()).get("signs", [])
        for sign in (part for whole in signs for part in whole.get("all", [whole])):
            unless = sign.get("unless", [])
            patterns = [sign.get("regex", ""), sign.get("text", ""), *([unless] if isinstance(unless, str) else unless)]
            assert max(map(len, patterns)) <= 200, path
