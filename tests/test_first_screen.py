"""The first screen of every log of the corpus, in both languages. It has at most 20 lines, also for verdicts stored
before answers existed."""

from __future__ import annotations

import dataclasses
import functools
import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.built_in import built_in_engine
from tests.corpus import fingerprints
from torchtriage.answer.first_screen import first_screen
from torchtriage.answer.localized_verdict import localized
from torchtriage.cli.text_width import columns, cut, wrapped
from torchtriage.cli.verdict_report import report
from torchtriage.domain.entry import Advice, Case, KnowledgeBase, Language, Text
from torchtriage.domain.verdict import Answer, AnswerStep, Evidence, Verdict
from torchtriage.engine import Engine
from torchtriage.reading.prefixes.strip import ANSI
from torchtriage.reading.sources import from_bytes
from torchtriage.storage.verdict_json import from_stored, to_stored

MAX_ROWS = 20  # lines
LANGUAGES: tuple[Language, ...] = ("en", "zh")
UNNUMBERED = Path(__file__).parent / "storage" / "verdicts_without_number.jsonl"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return built_in_engine()


@pytest.fixture(scope="module")
def triaged(engine: Engine) -> Callable[[str], Verdict]:
    """Returns a function that triages a case of the corpus."""
    return functools.cache(functools.partial(fingerprints.triaged, engine))


def rows(printed: str, width: int) -> int:
    """Returns the number of terminal rows of a report, including the empty line that print() adds."""
    lines = ANSI.sub("", printed).split("\n")
    wide = [sum(2 if unicodedata.east_asian_width(char) in "FW" else 1 for char in line) for line in lines]
    return sum(max(1, -(-columns // width)) for columns in wide)


@pytest.mark.parametrize("name", fingerprints.case_names())
def test_it_has_at_most_20_lines_and_all_its_parts(
    triaged: Callable[[str], Verdict], engine: Engine, name: str
) -> None:
    for lang in LANGUAGES:
        verdict = localized(triaged(name), engine.knowledge, lang)
        screen = first_screen(verdict, lang)
        for width in (80, 100, 200):
            told = report(verdict, lang, colour=True, width=width)
            assert rows(told, width) <= MAX_ROWS, told
        shown = report(verdict, lang, colour=False)
        squeezed = "".join(shown.split())
        assert "".join(screen.what.split())[:200] in squeezed
        if verdict.root_cause is None:
            continue
        assert screen.retry
        assert screen.because
        assert screen.steps
        assert "".join(screen.steps[0].do.split()) in squeezed
        assert all(len(step.do) < 300 for step in screen.steps)
        assert len(screen.steps) <= 3
        assert screen.why is not None
        assert f"{screen.why.line}: " in shown
        for place in screen.where:
            assert "".join(place.split()) in squeezed


def test_the_key_line_is_shown_without_a_progress_bar_and_a_build_folder(engine: Engine) -> None:
    check = "THCTensorIndex.cu:272: indexSelectLargeIndex: block: [171,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed."
    bar, folder = (
        "  0%|          | 0/1620 [00:00<?, ?it/s]",
        "/opt/conda/conda-bld/pytorch_1595629427478/work/aten/src/THC/",
    )
    verdict = engine.triage(from_bytes(f"epoch 0\n{bar}{folder}{check}\n".encode()))
    assert verdict.root_cause is not None
    assert verdict.root_cause.evidence[0].text.startswith(bar)
    why = first_screen(localized(verdict, engine.knowledge, "en"), "en").why
    assert why is not None
    assert why.text == check


def test_a_screen_that_is_too_long_omits_the_least_important(triaged: Callable[[str], Verdict], engine: Engine) -> None:
    for lang in LANGUAGES:
        verdict = localized(triaged("attribute_rank2"), engine.knowledge, lang)
        assert verdict.root_cause is not None
        steps = tuple(
            AnswerStep(f"Step {number} has many words, " + "and more of them " * 9, "\n".join(["run --this"] * 9))
            for number in (1, 2, 3)
        )
        long = dataclasses.replace(
            verdict,
            answer=Answer(None, "Something failed. " * 30, steps, "What this log does not show. " * 20),
            root_cause=dataclasses.replace(verdict.root_cause, evidence=(Evidence(7, "x" * 4000),)),
        )
        for width in (40, 80):
            told = report(long, lang, colour=False, width=width)
            assert width < 80 or rows(told, width) <= MAX_ROWS, told
            assert "Step 1" in told
        whole = report(long, lang, colour=False, whole=True)
        assert whole.count("run --this") == 27
        assert "x" * 4000 not in report(long, lang, colour=False)


def test_the_full_report_follows_the_first_screen(triaged: Callable[[str], Verdict], engine: Engine) -> None:
    for lang in LANGUAGES:
        verdict = localized(triaged("attribute_rank2"), engine.knowledge, lang)
        root = verdict.root_cause
        assert root is not None
        short, whole = (report(verdict, lang, colour=False, whole=whole) for whole in (False, True))
        behind = [*root.causes[1:], *root.checks, *root.prevent, *root.reasons, *root.references]
        behind += [fix.title for fix in root.fixes[3:]]
        for part in behind:
            assert part in whole
            assert part not in short
        assert "--all" in short.splitlines()[-1]
        assert "--all" not in whole
        assert "launcher: torchrun" in whole


def test_a_verdict_stored_without_an_answer_has_a_first_screen(engine: Engine) -> None:
    known = [json.loads(line) for line in UNNUMBERED.read_text(encoding="utf-8").splitlines()]
    assert sum(from_stored(stored).root_cause is not None for stored in known) > 1
    for stored in known:
        for lang in LANGUAGES:
            verdict = localized(from_stored(stored), engine.knowledge, lang)
            root = verdict.root_cause
            if root is None:
                assert first_screen(verdict, lang).what
                continue
            assert verdict.answer is not None
            assert verdict.answer.says
            entry = engine.knowledge.entries.get(root.entry or "")
            assert entry is None or entry.title.in_(lang).rstrip(".。") in verdict.answer.says
            assert rows(report(verdict, lang, colour=False), 100) <= MAX_ROWS
            own = [frame for frame in (root.exception.frames if root.exception else ()) if frame.user_code]
            assert not own or first_screen(verdict, lang).frame


def test_without_its_entry_an_old_verdict_shows_what_was_stored(engine: Engine) -> None:
    stored = next(json.loads(line) for line in UNNUMBERED.read_text(encoding="utf-8").splitlines())
    old, nothing = from_stored(stored), KnowledgeBase({}, "sha256:0")
    screen = first_screen(localized(old, nothing, "zh"), "zh")
    assert old.root_cause is not None
    assert screen.what == old.root_cause.title
    assert [step.do for step in screen.steps] == [fix.title for fix in old.root_cause.fixes[:2]]
    assert screen.unknown is None


def test_a_stored_answer_is_shown_in_the_readers_language_with_the_cases_advice(
    triaged: Callable[[str], Verdict], engine: Engine
) -> None:
    verdict = triaged("attribute_rank2")
    assert verdict.answer is not None
    entry = engine.knowledge.entries["usage.python-error"]
    says = Text("The sample lacks an image at {where}.", "{where} 处的样本没有图片。")
    own = Case("no-image", says, action=Advice("retry", "yes"), unknown=Text("Which file.", "哪个文件。"))
    entries = engine.knowledge.entries | {entry.id: dataclasses.replace(entry, cases=(own,))}
    knowledge = dataclasses.replace(engine.knowledge, entries=entries)
    told = dataclasses.replace(verdict, answer=dataclasses.replace(verdict.answer, case="no-image"))
    action = dataclasses.replace(told.action, advice="retry", retry="yes")
    stored = from_stored(json.loads(json.dumps(to_stored(dataclasses.replace(told, action=action)))))
    chinese = first_screen(localized(stored, knowledge, "zh"), "zh")
    assert chinese.what.startswith("/job/train.py:10 处的样本没有图片。")
    assert chinese.unknown == "哪个文件。"
    assert (chinese.retry, chinese.because) == (
        "yes",
        "原因是暂时性的；重新启动任务，有 checkpoint 就从最近的继续运行。",
    )
    english = first_screen(localized(stored, knowledge, "en"), "en")
    assert english.what.startswith("The sample lacks an image at /job/train.py:10.")


def test_text_is_measured_in_columns() -> None:
    assert columns("rank 3") == 6
    assert columns("显存不足") == 8
    assert cut("显存不足", 7) == "显存不…"
    assert wrapped("one two three", 7, inner=2) == ["one two", "  three"]
    assert wrapped("显存不足，需要", 10) == ["显存不足，", "需要"]
    assert wrapped("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    assert wrapped("one two three four", 7, most=2) == ["one two", "three…"]
    assert wrapped("", 10) == [""]
