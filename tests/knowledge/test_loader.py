import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.built_in import small_bases
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import BUILT_IN, checks
from torchtriage.knowledge.cache import load as load_cached
from torchtriage.knowledge.loader import load

MODEL = (BUILT_IN / "dataloader" / "shm-bus-error.yaml").read_text(encoding="utf-8")


def write(folder: Path, name: str, source: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return folder


def test_all_problems_come_at_once_with_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, "dataloader/shm-bus-error.yaml", MODEL.replace("owner: user", "owner: nobody"))
    write(tmp_path, "cuda/broken.yaml", "id: cuda.broken\ntitle: {en: [\n")
    with pytest.raises(KnowledgeError) as raised:
        load([tmp_path])
    assert len(raised.value.problems) == 2
    line = MODEL.split("\n").index("owner: user") + 1
    assert any(problem.startswith(f"dataloader/shm-bus-error.yaml:{line}: owner") for problem in raised.value.problems)


def test_a_key_that_is_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "dataloader/shm-bus-error.yaml", MODEL + "owner: platform\n")
    with pytest.raises(KnowledgeError, match=rf"shm-bus-error.yaml:{MODEL.count(chr(10)) + 1}: owner appears twice"):
        load([tmp_path])


def test_an_id_that_is_not_its_path_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "dataloader/other.yaml", MODEL)
    with pytest.raises(KnowledgeError, match="differs from the file's path"):
        load([tmp_path])


def test_a_later_folder_replaces_an_entry(tmp_path: Path) -> None:
    write(tmp_path, "dataloader/shm-bus-error.yaml", MODEL.replace("ran out of shared memory", "met our own limit"))
    assert "our own limit" in load([BUILT_IN, tmp_path]).entries["dataloader.shm-bus-error"].title.en


def test_the_cache_is_keyed_by_content_and_survives_rubbish(tmp_path: Path) -> None:
    folder, cache = write(tmp_path / "kb", "dataloader/shm-bus-error.yaml", MODEL), tmp_path / "cache"
    first = load_cached([folder], cache)
    assert load_cached([folder], cache) == first
    for kept in cache.iterdir():
        kept.write_bytes(b"rubbish")
    assert load_cached([folder], cache) == first
    write(folder, "dataloader/shm-bus-error.yaml", MODEL.replace("ran out", "ran short"))
    assert load_cached([folder], cache).digest != first.digest


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[1, 2]: 3\n", ":1: unhashable"),
        ("a: 2026-13-01\n", ":1: month must be in"),
        ("a: \0\n", ":1: .*control characters"),
        ("", ":1: entry: "),
    ],
)
def test_whatever_a_file_holds_is_a_problem_of_that_file(tmp_path: Path, source: str, expected: str) -> None:
    write(tmp_path, "custom/broken.yaml", source)
    with pytest.raises(KnowledgeError, match=f"^custom/broken.yaml{expected}") as raised:
        load([tmp_path])
    assert len(raised.value.problems) == 1


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "dataloader/shm-bus-error.yaml", MODEL)
    (tmp_path / "dataloader" / "other.yaml").symlink_to("nowhere")
    for read in (load, lambda folders: load_cached(folders, tmp_path / "cache")):
        with pytest.raises(KnowledgeError, match=r"other\.yaml: can't be read: No such file or directory"):
            read([tmp_path])


@pytest.mark.parametrize(
    ("pattern", "expected"), [("foo(bar", "RE2 rejects 'foo\\(bar'"), ("x{2,1}", "rejects"), ("(?=x)", "RE2 rejects")]
)
def test_a_pattern_that_no_engine_takes_is_refused_when_it_is_loaded(
    tmp_path: Path, pattern: str, expected: str
) -> None:
    broken = re.sub(r"(?m)^    sign: .*$", f"    sign: '{pattern}'", MODEL, count=1)
    write(tmp_path / "kb", "dataloader/shm-bus-error.yaml", broken)
    line = broken.split("\n").index(f"    sign: '{pattern}'") + 1
    with pytest.raises(KnowledgeError, match=f"^dataloader/shm-bus-error.yaml:{line}: .*{expected}"):
        load_cached([tmp_path / "kb"], tmp_path / "cache")


def test_only_files_that_changed_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def noted(source: bytes, **options: Any) -> object:
        read.append(source)
        return parse(source, **options)

    parse = yaml.load
    monkeypatch.setattr(yaml, "load", noted)
    write(tmp_path, "dataloader/shm-bus-error.yaml", MODEL)
    write(tmp_path, "custom/old.yaml", NEW)
    before = load([tmp_path])
    read.clear()
    assert load([tmp_path]) == before
    write(tmp_path, "custom/old.yaml", NEW.replace("An old entry", "A renewed entry"))
    assert load([tmp_path]).entries["custom.old"].title.en == "A renewed entry"
    assert [b"A renewed entry" in source for source in read] == [True]


def test_shipped_entries_are_not_proved_again_next_to_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proved: list[str] = []
    monkeypatch.setattr(checks, "refused_by_re2", proved.append)
    write(tmp_path / "kb", "custom/old.yaml", NEW)
    load_cached([BUILT_IN, tmp_path / "kb"], small_bases())
    assert {"first", "third"} <= set(proved)
    assert len(proved) < 10


OLD = """\
id: custom.old
kind: cause
title: {en: An old entry, zh: 旧条目}
area: custom
owner: user
general: true
signs:
  - {regex: 'first', in: line, weak: true}
  - {text: second, broad: true}
  - all: [{text: third, in: exception}, {text: fourth}]
action: {advice: retry, retry: once}
other_actions:
  - {advice: none, retry: no, shown_by: gone}
causes:
  - {en: Why., zh: 原因, shown_by: first}
fixes:
  - title: {en: Do., zh: 做}
    shown_by: second
examples: {match: [first second]}
"""
NEW = (
    OLD.replace("general:", "needs_training_log:")
    .replace("in: ", "search_in: ")
    .replace("weak: true", "severity: warning")
    .replace("broad:", "last_resort:")
    .replace("other_actions:", "action_when:")
    .replace("shown_by:", "when_message_has:")
)


def test_an_entry_in_the_words_of_earlier_versions_loads_with_warnings(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    today = load([write(tmp_path / "new", "custom/old.yaml", NEW)])
    assert not caplog.messages
    assert load([write(tmp_path / "old", "custom/old.yaml", OLD)]).entries == today.entries
    assert len(caplog.messages) == 9
    assert "custom/old.yaml:6: 'general' is now written 'needs_training_log'" in caplog.messages
    assert "custom/old.yaml:8: 'weak' is now written 'severity: warning'" in caplog.messages
    assert "custom/old.yaml:13: 'shown_by' is now written 'when_message_has'" in caplog.messages


def test_an_old_word_next_to_the_new_one_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "custom/old.yaml", NEW.replace("owner: user\n", "owner: user\ngeneral: true\n"))
    with pytest.raises(KnowledgeError, match=r"^custom/old\.yaml:6: general: Extra inputs"):
        load([tmp_path])
