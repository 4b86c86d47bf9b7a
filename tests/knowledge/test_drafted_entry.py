"""A draft of the page, and the file of the entry that it is: what one says is wrong the other does."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.built_in import built_in_knowledge, vocabulary
from tests.drafts import SAYS, SIGN, SOUND
from torchtriage.domain.draft import Draft, DraftCheck, DraftStep
from torchtriage.domain.entry import KnowledgeBase, Text
from torchtriage.knowledge.checks import check
from torchtriage.knowledge.drafted_entry import check_draft, yaml_of
from torchtriage.knowledge.loader import load
from torchtriage.web.pages.error_texts import problem_text

ALONE = KnowledgeBase({}, "sha256:none", vocabulary())


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def checked(cache: Path, **changes: Any) -> DraftCheck:
    return check_draft(dataclasses.replace(SOUND, **changes), ALONE, cache)


def test_a_sound_draft_says_in_both_languages_what_it_would_say_of_its_example(cache: Path) -> None:
    found = checked(cache)
    assert (found.problems, found.sound) == ((), True)
    assert found.says == Text(SAYS, "/data/a.idx 的分片 3 只有 3005 条记录。")
    assert found.steps == (Text("Rewrite shard 3.", "重写分片 3。"),)


def test_a_step_that_is_not_written_yet_is_not_shown(cache: Path) -> None:
    found = checked(cache, steps=(DraftStep(),))
    assert [problem.field for problem in found.problems] == ["step1_en"]
    assert (found.says is not None, found.steps) == (True, ())


def test_its_file_is_an_entry_without_problems(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "ourdata").mkdir()
    text = yaml_of(SOUND, checked(cache).says)
    (tmp_path / "ourdata/shard-too-short.yaml").write_text(text, encoding="utf-8")
    report = check(load([tmp_path]), [tmp_path], cache)
    assert (report.problems, report.warnings, report.unproved) == ([], [], [])
    assert report.answers["ourdata.shard-too-short", load([tmp_path]).entries[SOUND.entry].cases[0].id].says.startswith(
        SAYS
    )


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"entry": ""}, "entry", "this is missing"),
        ({"entry": "Shard"}, "entry", "area.name"),
        ({"title_en": ""}, "title_en", "this is missing"),
        ({"title_en": "a b c d e f g h i j k"}, "title_en", "the title has 11 words"),
        ({"title_en": "分片太短"}, "title_en", "Chinese in"),
        ({"sign": ""}, "sign", "this is missing"),
        ({"sign": "Shard(?=Too)Short"}, "sign", "RE2 rejects"),
        ({"sign": SIGN + "." * 200}, "sign", "more than 200"),
        ({"sign": "step "}, "sign", "matches a line of a healthy log"),
        ({"sign": "ShardTooLong"}, "example", "the verdict on its example is unexplained"),
        ({"says_en": ""}, "says_en", "this is missing"),
        ({"says_en": "Shard {shart} is short."}, "says_en", "the example has no value for {shart}"),
        ({"says_zh": "分片 {shart} 太短。"}, "says_zh", "nothing fills the slot {shart}"),
        ({"says_en": "word " * 36}, "says_en", "the answer to its example has 36 words"),
        ({"steps": (DraftStep(),) * 3}, "step1_en", "at least one step"),
        ({"steps": (DraftStep(), DraftStep("word " * 21), DraftStep())}, "step2_en", "the step has 21 words"),
        (
            {"steps": (DraftStep(), DraftStep(), DraftStep("Look.", "看。", "ls {code}"))},
            "step3_run",
            "not a single word",
        ),
        ({"steps": (DraftStep("", "看。", ""), DraftStep(), DraftStep())}, "step1_en", "this is missing"),
        ({"source": "ourdata"}, "source", "no version or date"),
        ({"source": ""}, "source", "this is missing"),
        ({"example": ""}, "example", "this is missing"),
        ({"near_miss": f"Exception: {SOUND.example.splitlines()[-1][9:]}"}, "near_miss", "it matches its near miss"),
    ],
)
def test_each_problem_is_at_its_field_and_has_its_chinese(
    cache: Path, changes: dict[str, Any], field: str, message: str
) -> None:
    found = checked(cache, **changes)
    problem = next(problem for problem in found.problems if problem.field == field)
    assert message in problem.message
    assert (problem.warning, found.sound) == (False, False)
    assert problem_text("zh", problem.message) != problem.message


def test_what_is_missing_hides_nothing_else(cache: Path) -> None:
    found = checked(cache, entry="", title_en="", steps=(DraftStep(),) * 3, source="ourdata", says_zh="{shart}")
    assert {problem.field for problem in found.problems} == {"entry", "title_en", "step1_en", "source", "says_zh"}
    assert found.says is not None
    assert found.says.en == SAYS


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title_zh": ""}, "title_zh"),
        ({"says_zh": ""}, "says_zh"),
        ({"steps": (DraftStep("Look."), DraftStep(), DraftStep())}, "step1_zh"),
        ({"near_miss": ""}, "near_miss"),
    ],
)
def test_what_a_contributor_may_leave_to_others_is_a_warning(cache: Path, changes: dict[str, Any], field: str) -> None:
    found = checked(cache, **changes)
    assert [(problem.field, problem.warning) for problem in found.problems] == [(field, True)]
    assert problem_text("zh", found.problems[0].message) != found.problems[0].message
    assert found.sound


def test_an_example_that_a_shipped_entry_explains_is_not_the_drafts() -> None:
    taken = dataclasses.replace(
        SOUND,
        sign="out of memory. Tried",
        example="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",
    )
    found = check_draft(taken, built_in_knowledge(), None, taken=())
    assert any(
        "the verdict on its example is" in problem.message or "speaks" in problem.message for problem in found.problems
    )
    assert check_draft(SOUND, ALONE, None, taken=[SOUND.entry]).problems[0].message.startswith("an entry with this id")


@pytest.mark.parametrize(
    "typed", ["'", '"', "\\d {x} [[y]]", ": #", "- a", "\u2028", "!!python/object", "yes", "{", "\t"]
)
def test_whatever_is_typed_the_file_says_it(typed: str) -> None:
    import yaml

    step = DraftStep(f"do {typed} .", f"做{typed}。", f"ls {typed}x")
    draft = Draft("a.b", f"t {typed} .", f"标{typed}题", sign=f"s {typed} .", says_en=f"e {typed} .", steps=(step,),
                  source=f"f 1 {typed} .", example=f"e: {typed}x\n  indented", near_miss=f"n {typed} .")  # fmt: skip
    read = yaml.safe_load(yaml_of(draft, Text(f"e {typed} .", "")))
    case = read["cases"][0]
    assert (read["title"], case["sign"]) == ({"en": draft.title_en, "zh": draft.title_zh}, draft.sign)
    assert case["do"] == [{"en": step.en, "zh": step.zh, "run": step.run}]
    assert (case["example"], case["source"]) == (draft.example, draft.source)
    assert read["examples"]["no_match"] == [draft.near_miss]
    assert case["expect"] == {"en": draft.says_en}
