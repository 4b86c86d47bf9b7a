"""A file that adds a case to an entry: what it is read as, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.built_in import built_in_knowledge
from tests.drafts import SAYS, SOUND, UNKNOWN
from torchtriage.domain.entry import Text
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import loader
from torchtriage.knowledge.drafted_entry import check_draft, yaml_of
from torchtriage.reading.sources import from_bytes
from torchtriage.web.pages.error_texts import problem_text

GENERAL = """\
id: ourdata.shards
kind: cause
title: {en: 'A shard cannot be read'}
area: ourdata
owner: platform
signs: [{regex: 'ourdata\\.shards\\.\\w+:', where: exception}]
causes: [{en: 'The shard is damaged.'}]
fixes: [{title: {en: 'Write the shard again'}}]
action: {advice: fix-first, retry: no}
examples:
  match: ['ourdata.shards.ShardBroken: shard 1 of ''/data/a.idx'' is broken']
  no_match: ['ourdata.shards is imported']
"""
CASE = replace(SOUND, entry="ourdata.shards/too-short", title_en="", title_zh="")


def folder(home: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return home


def test_an_added_case_speaks_and_the_entry_stays(tmp_path: Path) -> None:
    base = folder(tmp_path / "base", {"ourdata/shards.yaml": GENERAL})
    added = folder(tmp_path / "added", {"ourdata/shards+too-short.yaml": yaml_of(CASE, Text(SAYS, ""))})
    for folders, says in (([base], "The shard is damaged"), ([base, added], SAYS)):
        verdict = Engine(loader.load(folders)).triage(from_bytes(UNKNOWN.encode()))
        assert verdict.root_cause is not None
        assert verdict.answer is not None
        assert verdict.root_cause.entry == "ourdata.shards"
        assert verdict.root_cause.owner == "platform"
        assert says in " ".join((verdict.answer.says, *verdict.root_cause.causes))
    entry = loader.load([base, added]).entries["ourdata.shards"]
    assert [case.id for case in entry.cases] == ["too-short"]
    assert entry.case_of_signs == (None, 0)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"ourdata/shards+too-short.yaml": yaml_of(CASE)}, "ourdata.shards: there is no such entry"),
        (
            {
                "ourdata/shards.yaml": GENERAL,
                "ourdata/shards+a.yaml": yaml_of(CASE),
                "ourdata/shards+b.yaml": yaml_of(CASE),
            },
            "ourdata.shards: it already has a case too-short",
        ),
        (
            {"ourdata/shards.yaml": GENERAL, "ourdata/shards+a.yaml": "adds_to: ourdata.shards\ncases: []\n"},
            "shards+a.yaml:2: cases",
        ),
    ],
)
def test_what_can_not_be_added_is_reported_with_its_file(files: dict[str, str], expected: str, tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match=expected.replace("+", r"\+")):
        loader.load([folder(tmp_path, files)])


MIXED = GENERAL.replace(
    "action:",
    """\
cases:
  - id: too-short
    sign: 'ShardTooShort: shard'
    says: {en: 'A shard is short.', zh: '分片太短。'}
    do: [{en: 'Write it again.', zh: '重新写入。'}]
    retry: no
    source: 'ourdata 1.4, ourdata/shards.py'
    example: 'ourdata.shards.ShardTooShort: shard 9 of ''/b'' ends after 1 records'
    expect: {en: 'A shard is short.', zh: '分片太短。'}
action:""",
)
OTHER = replace(CASE, entry="ourdata.shards/of-a")


def test_only_the_whole_proof_reads_the_examples_of_other_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(engine: Engine, example: str) -> Verdict:
        read.append(example)
        return engine.triage(from_bytes(example.encode()))

    monkeypatch.setattr("torchtriage.knowledge.checks._read", counted)
    knowledge = loader.load([folder(tmp_path, {"ourdata/shards.yaml": MIXED})])
    narrow = replace(OTHER, sign=OTHER.sign.replace("(?P<path>[^'\\n]+)", "(?P<path>/data[^'\\n]+)"))
    for whole, count in ((False, 1), (True, 4)):
        read.clear()
        sound = check_draft(narrow, knowledge, tmp_path, (), whole)
        assert (sound.problems, sound.says and sound.says.en, len(read)) == ((), SAYS, count)
    assert check_draft(OTHER, knowledge, tmp_path, (), whole=False).sound
    (lost,) = check_draft(OTHER, knowledge, tmp_path).problems
    assert (lost.field, lost.warning) == ("sign", False)
    assert lost.message.startswith(
        "another case would lose its example: too-short: its example is answered by case of-a"
    )
    assert "会抢走另一个 case 的示例" in problem_text("zh", lost.message)


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sign": "Shard(?=Too)Short"}, "sign"),
        ({"sign": SOUND.sign + "." * 200}, "sign"),
        ({"sign": "ShardTooLong"}, "example"),
        ({"says_en": "Shard {shart} is short."}, "says_en"),
        ({"source": "ourdata"}, "source"),
        ({"near_miss": SOUND.example.splitlines()[-1]}, "near_miss"),
    ],
)
def test_both_proofs_say_what_is_wrong_with_the_case(
    changes: dict[str, str], field: str, whole: bool, tmp_path: Path
) -> None:
    knowledge = loader.load([folder(tmp_path, {"ourdata/shards.yaml": MIXED})])
    found = check_draft(replace(OTHER, **changes), knowledge, tmp_path, (), whole)  # type: ignore[arg-type]
    assert field in {problem.field for problem in found.problems if not problem.warning}


@pytest.mark.slow
def test_a_draft_of_a_case_needs_an_entry_that_exists() -> None:
    nowhere = check_draft(CASE, built_in_knowledge(), None)
    assert ("entry", "no entry has the id ourdata.shards") in {(one.field, one.message) for one in nowhere.problems}
    odd = check_draft(replace(CASE, entry="ourdata.shards/Too Short"), built_in_knowledge(), None)
    assert "entry" in {one.field for one in odd.problems}
