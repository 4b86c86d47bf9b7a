import pytest

from tests.built_in import built_in_engine, built_in_knowledge
from tests.yaml_files import read_yaml
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.checks import Report, check
from torchtriage.reading.sources import from_bytes

pytestmark = pytest.mark.first


@pytest.fixture(scope="module")
def report() -> Report:
    return check(built_in_knowledge())


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_entry_wins_its_first_example(step: int) -> None:
    """All examples are read in the slow suite, and by `make check`."""
    engine = built_in_engine()
    won, lost = set(), {}
    for entry in list(built_in_knowledge().entries.values())[::step]:
        for example in [*entry.match_examples, *(case.example for case in entry.cases if case.example)][:1]:
            root = engine.triage(from_bytes(example.encode())).root_cause
            if root is not None and root.entry == entry.id:
                won.add(entry.id)
            else:
                lost[entry.id] = root and root.entry
    assert lost == {}
    assert len(won) > 200 // step


@pytest.mark.slow
def test_every_entry_and_case_is_proved_by_its_own_examples(report: Report) -> None:
    assert report.problems == report.warnings == []


@pytest.mark.slow
def test_each_sign_belongs_to_a_case_and_is_shown_by_an_example(report: Report) -> None:
    assert report.unproved == []
    assert report.without_case == 0


def test_no_pattern_of_a_sign_is_longer_than_200_characters() -> None:
    for path in sorted(BUILT_IN.glob("[a-z]*/*.yaml")):
        signs = read_yaml(path).get("signs", [])
        for sign in (part for whole in signs for part in whole.get("all", [whole])):
            unless = sign.get("unless", [])
            patterns = [sign.get("regex", ""), sign.get("text", ""), *([unless] if isinstance(unless, str) else unless)]
            assert max(map(len, patterns)) <= 200, path
