from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_in import built_in_knowledge
from torchtriage.domain.entry import Role
from torchtriage.engine import Engine
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.cache import load as load_cached
from torchtriage.knowledge.loader import load
from torchtriage.reading.sources import from_bytes

ENTRY = (BUILT_IN / "dataloader" / "shm-bus-error.yaml").read_text(encoding="utf-8")
PATTERN = "source: ours\npatterns:\n  - regex: '^ours\\.Carrier: '\n    examples: ['{}']\n    no_match: ['{}']\n"


def overlay(folder: Path, name: str, source: str) -> Path:
    path = folder / "_vocabulary" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return folder


def test_every_built_in_list_says_what_it_is_for_and_where_it_comes_from() -> None:
    lists = built_in_knowledge().vocabulary.lists
    assert {path.stem for path in (BUILT_IN / "_vocabulary").iterdir()} == set(lists)
    assert all(each.purpose and each.source for each in lists.values())


def test_a_folder_of_ones_own_adds_to_a_list(tmp_path: Path) -> None:
    built_in = built_in_knowledge().vocabulary.words("traceback-entry-points")
    folder = overlay(tmp_path, "traceback-entry-points", "source: ours\nwords: [start_of_ours, main]\n")
    assert load([BUILT_IN, folder]).vocabulary.words("traceback-entry-points") == (*built_in, "start_of_ours")


def test_the_built_in_vocabulary_is_there_without_the_built_in_entries(tmp_path: Path) -> None:
    folder = overlay(tmp_path, "carrier-exceptions", PATTERN.format("ours.Carrier: KeyError", "Carrier: KeyError"))
    knowledge = load([folder])
    assert not knowledge.entries
    assert knowledge.vocabulary.regex("carrier-exceptions").endswith(r"|^ours\.Carrier: ")


def test_the_patterns_of_a_list_are_proved_once_a_process(tmp_path: Path) -> None:
    lists = [load([folder]).vocabulary.lists["carrier-exceptions"] for folder in (tmp_path, BUILT_IN)]
    assert lists[0] is lists[1]
    folder = overlay(tmp_path, "carrier-exceptions", "source: ours\nwords: [a]\n")
    assert load([folder]).vocabulary.words("carrier-exceptions")[-1] == "a"
    overlay(tmp_path, "carrier-exceptions", "source: ours\nwords: [b]\n")
    assert load([folder]).vocabulary.words("carrier-exceptions")[-1] == "b"


def test_words_are_literal_in_a_regex(tmp_path: Path) -> None:
    folder = overlay(tmp_path, "traceback-entry-points", "source: ours\nwords: ['a.b']\n")
    assert load([folder]).vocabulary.regex("traceback-entry-points").endswith(r"|a\.b")


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("unheard-of", "source: ours\nwords: [a]\n", r"unheard-of\.yaml:1: no vocabulary list has this name"),
        ("carrier-exceptions", "source: ours\nwords: [a]\npatterns: []\ngroups: {a: [b]}\n", "exactly one of words"),
        ("carrier-exceptions", "source: ours\nwords: [a, b, a]\n", "'a' appears twice"),
        ("carrier-exceptions", "words: [a]\n", r"carrier-exceptions\.yaml:1: source: Field required"),
        ("carrier-exceptions", PATTERN.format("Carrier: KeyError", "x"), r"yaml:3: .* does not match its example"),
        ("carrier-exceptions", PATTERN.format("ours.Carrier: a", "ours.Carrier: b"), "matches its near miss"),
        ("carrier-exceptions", "source: o\npatterns:\n  - {regex: '(a', examples: [a]}\n", ":3: .*RE2 rejects"),
        ("carrier-exceptions", f"source: o\npatterns:\n  - {{regex: {'a' * 201}, examples: [a]}}\n", "200 characters"),
        (
            "line-facts-settings",
            "source: o\nfacts: {a: b}\npatterns: [{regex: '(?P<x>1)', examples: ['1']}]\n",
            "'x' of",
        ),
        (
            "line-facts-settings",
            "source: o\nfacts: {a: b}\npatterns: [{regex: '(1)', examples: ['1']}]\n",
            "needs a name",
        ),
        ("area-roles", "source: ours\ngroups:\n  ours: [timeout, no-such-role]\n", r":3: unknown role 'no-such-role'"),
    ],
)
def test_a_wrong_list_is_refused_with_file_and_line(tmp_path: Path, name: str, source: str, expected: str) -> None:
    with pytest.raises(KnowledgeError, match=expected) as raised:
        load([overlay(tmp_path, name, source)])
    assert len(raised.value.problems) == 1


def test_the_cache_and_the_digest_know_the_vocabulary(tmp_path: Path) -> None:
    folder, cache = overlay(tmp_path / "kb", "traceback-entry-points", "source: ours\nwords: [a]\n"), tmp_path / "cache"
    first = load_cached([folder], cache)
    assert load_cached([folder], cache) == first == load([folder])
    overlay(folder, "traceback-entry-points", "source: ours\nwords: [b]\n")
    second = load_cached([folder], cache)
    assert second.digest != first.digest
    assert "b" in second.vocabulary.words("traceback-entry-points")


def test_an_entry_has_its_own_roles_and_those_of_its_area() -> None:
    entries = built_in_knowledge().entries
    assert entries["nccl.timeout"].roles == {Role.TIMEOUT, Role.DISTRIBUTED_SYMPTOM}
    assert entries["nccl.ib"].roles == {Role.DISTRIBUTED_SYMPTOM}
    assert not entries["cuda.oom"].roles


def test_every_role_is_that_of_an_entry() -> None:
    assert {role for entry in built_in_knowledge().entries.values() for role in entry.roles} == set(Role)


def test_an_unknown_role_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "dataloader" / "shm-bus-error.yaml"
    path.parent.mkdir()
    path.write_text(ENTRY.replace("owner: user\n", "owner: user\nroles: [bystander]\n"), encoding="utf-8")
    line = ENTRY.split("\n").index("owner: user") + 2
    with pytest.raises(KnowledgeError, match=rf"^dataloader/shm-bus-error\.yaml:{line}: roles\.0: ") as raised:
        load([tmp_path])
    assert len(raised.value.problems) == 1
    assert "\n" not in raised.value.problems[0]


def small_base(folder: Path) -> Path:
    """Returns a folder with one entry: an engine needs at least one sign."""
    (folder / "dataloader").mkdir()
    (folder / "dataloader" / "shm-bus-error.yaml").write_text(ENTRY, encoding="utf-8")
    return folder


def test_a_folder_of_ones_own_adds_a_package_whose_version_is_reported(tmp_path: Path) -> None:
    listed = "source: ours\npatterns:\n  - {name: ourlib, regex: 'our[-_]lib', examples: [our-lib]}\n"
    folder = overlay(small_base(tmp_path), "package-spellings", listed)
    log = b"our_lib==1.2.3\ntorch==2.6.0\nRuntimeError: something\n"
    versions = Engine(load([folder])).triage(from_bytes(log)).run.versions
    assert (versions["ourlib"], versions["torch"]) == ("1.2.3", "2.6.0")


def test_a_folder_of_ones_own_adds_an_error_that_is_harmless(tmp_path: Path) -> None:
    engine = Engine(load([small_base(tmp_path)]))
    log = b"step 1 loss 2.0\nstep 2 loss 1.9\nERROR: the gadget sulks\n"
    assert engine.triage(from_bytes(log)).outcome == "unexplained"
    listed = "source: ours\npatterns:\n  - {regex: 'gadget sulks', examples: [the gadget sulks]}\n"
    harmless = Engine(load([overlay(tmp_path, "error-levels-harmless", listed)]))
    assert harmless.triage(from_bytes(log)).outcome != "unexplained"


def test_a_folder_of_ones_own_adds_functions_that_open_files_and_functions_of_a_phase(tmp_path: Path) -> None:
    folder = small_base(tmp_path)
    overlay(folder, "file-functions", "source: ours\nwords: [read_part]\n")
    overlay(
        folder,
        "phase-functions",
        "source: ours\npatterns:\n  - {name: evaluate, regex: ':measure_all$', examples: ['a.py:measure_all']}\n",
    )
    log = (
        b'Traceback (most recent call last):\n  File "/job/train.py", line 7, in measure_all\n'
        b"    frame = shards.read_part(names.get(3))\n"
        b"FileNotFoundError: [Errno 2] No such file or directory: 'a'\n"
    )
    verdict = Engine(load([folder])).triage(from_bytes(log))
    assert verdict.run.phase == "evaluate"
    assert ("called", "shards.read_part") in [(fact.name, fact.value) for fact in verdict.facts]
