from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.built_in import built_in_knowledge
from torchtriage.decision.policy import CauseRule, load_policy
from torchtriage.errors import SettingError


def test_the_default_policy_is_complete_and_restarts_a_little() -> None:
    policy = load_policy()
    assert policy.name == "default"
    assert set(policy.retries) == {"yes", "once", "no", "unexplained"}
    assert policy.retries["once"] == 1
    assert policy.cause("user.cancelled").wait
    assert not policy.cause("cuda.oom").wait
    assert policy.cause(None) == CauseRule("*")


def test_a_file_needs_only_what_differs_and_its_causes_come_first(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "restarts: 5\nretries: {once: 3, 'no': 0, yes: 4}\ncauses:\n  'storage.io-error': {retries: 9}\n  'user.*': {wait: false}\n"
    )
    policy = load_policy(path)
    assert (policy.name, policy.restarts, policy.retries["once"], policy.retries["yes"]) == (str(path), 5, 3, 4)
    assert policy.cause("storage.io-error") == CauseRule("storage.io-error", retries=9)
    assert policy.cause("storage.mount").delay_seconds == (60, 300, 900)
    assert not policy.cause("user.cancelled").wait


def test_an_empty_file_is_the_default_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("# nothing differs here\n")
    assert load_policy(path).retries == load_policy().retries


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("restart: 5\n", "restart: unknown key"),
        ("restarts: -1\n", "restarts: Input should be greater than or equal to 0"),
        ("restarts: many\n", "restarts: Input should be a valid integer, unable to parse string as an integer"),
        ("restarts: true\n", "restarts: not a number"),
        ("same_step: 1\n", "same_step: Input should be greater than or equal to 2"),
        ("retries: {often: 1}\n", "retries.often: unknown key"),
        ("retries: 3\n", "retries: Input should be a valid dictionary or instance of _RetriesForm"),
        ("delay_seconds: []\n", "delay_seconds: List should have at least 1 item after validation, not 0"),
        ("causes: {'a.b': {stop: true}}\n", "causes.a.b.stop: unknown key"),
        ("- restarts\n", "not a mapping of keys to values"),
        ("restarts: [1\n", "line 2: "),
        ("hosts: {most: 1, exclude_after: 0}\n", "hosts.exclude_after: Input should be greater than or equal to 1"),
        ("restarts: !!python/object/apply:os.system [ls]\n", "line 1: could not determine a constructor"),
        ("\0", "no YAML: "),
    ],
)
def test_a_wrong_file_is_reported_in_one_line_with_its_name(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(content)
    with pytest.raises(SettingError) as raised:
        load_policy(path, "TRIAGE_POLICY_FILE")
    assert raised.value.message.startswith(f"TRIAGE_POLICY_FILE: {path}: {said}")
    assert "\n" not in raised.value.message


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"can't be read: No such file or directory$"):
        load_policy(tmp_path / "none.yaml")
    with pytest.raises(SettingError, match="can't be read: Is a directory"):
        load_policy(tmp_path)
    large = tmp_path / "large.yaml"
    large.write_text("# " + "x" * (1 << 20))
    with pytest.raises(SettingError, match="larger than"):
        load_policy(large)


def test_the_causes_of_the_default_policy_are_entries() -> None:
    entries = built_in_knowledge().entries
    for rule in load_policy().causes:
        assert [entry for entry in entries if fnmatchcase(entry, rule.pattern)], rule.pattern
