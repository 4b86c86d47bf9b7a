"""Each house rule of cases, broken once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_in import built_in_knowledge, small_bases
from torchtriage.answer.failure_facts.fact_names import known_slots
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge.case_checks import is_fact
from torchtriage.knowledge.checks import Report, check
from torchtriage.knowledge.loader import load

FILE = "quantum/tube.yaml"
MODEL = """\
id: quantum.tube
kind: cause
title: {en: A flux tube is empty, zh: 通量管为空}
area: quantum
owner: user
signs:
  - regex: 'flux\\.Burst: '
cases:
  - id: empty
    sign: 'flux\\.Lost: tube (?P<tube>\\d+) of (?P<path>[^\\n]+) is empty'
    search_in: exception
    says: {en: 'Tube {tube} of {path} is empty[[ at step {step}]].', zh: '{path} 的管 {tube} 为空。'}
    do:
      - {en: 'Fill tube {tube} before the next run.', zh: '先灌满管 {tube}。', run: 'fill {path} {tube}'}
    retry: no
    source: 'flux 1.2, flux/tube.py'
    example: |-
      Traceback (most recent call last):
        File "train.py", line 3, in <module>
          flux.pump(tube)
      flux.Lost: tube 17 of lab.cfg is empty
    expect: 'Tube 17 of lab.cfg is empty. Raised at train.py:3: `flux.pump(tube)`.'
  - id: burst-in-pump
    when: {frames: 'in (?P<pump>\\w+_pump)\\b'}
    says: {en: 'The pump {pump} burst its tube.', zh: '泵 {pump} 撑破了管。'}
    source: 'flux 1.2, flux/pump.py'
    example: |-
      Traceback (most recent call last):
        File "lab.py", line 9, in main_pump
          flux.pump(tube)
      flux.Burst: no tube left
    expect: {en: 'The pump main_pump burst its tube. Raised at lab.py:9: `flux.pump(tube)`.'}
  - id: burst
    says: {en: 'A tube burst.', zh: '有一根管破裂。'}
    unknown: {en: 'Which one this log does not show.', zh: '日志没有显示是哪一根。'}
    example: 'flux.Burst: bang'
    expect: 'A tube burst.'
action: {advice: fix-first, retry: no}
examples:
  no_match: ['flux.Found: tube 17 is full']
"""


def checked(folder: Path, *changes: tuple[str, str]) -> Report:
    """Returns the report of a base of one entry in which each `old` reads `new`."""
    text = MODEL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return check(load([folder]), [folder], small_bases())


def line(text: str) -> int:
    return next(number for number, found in enumerate(MODEL.splitlines(), 1) if text in found)


def test_sound_cases_have_no_problem_and_are_counted(tmp_path: Path) -> None:
    report = checked(tmp_path)
    assert report.problems == report.warnings == report.unproved == []
    assert (report.entries, report.cases, report.in_cases, report.without_case) == (1, 3, 1, 1)
    assert report.answers["quantum.tube", "empty"].steps[0].run == "fill lab.cfg 17"


EXPECT = "    expect: 'Tube 17 of lab.cfg is empty. Raised at train.py:3: `flux.pump(tube)`.'\n"
EXAMPLE = MODEL[MODEL.index("    example: |-\n") : MODEL.index(EXPECT)]
SAYS = "says: {en: 'Tube {tube} of {path} is empty[[ at step {step}]].'"
DO = "en: 'Fill tube {tube} before the next run.'"


@pytest.mark.parametrize(
    ("old", "new", "problem", "at"),
    [
        (EXAMPLE + EXPECT, "", "case empty: no example", "- id: empty"),
        ("    source: 'flux 1.2, flux/tube.py'\n", "", "case empty: no source", "- id: empty"),
        ("flux 1.2, flux/tube.py", "flux, flux/tube.py", "the source has no version or date", "flux/tube.py"),
        ("flux 1.2, flux/tube.py", "TODO package 1.2", "still to write: 'TODO package 1.2'", "flux/tube.py"),
        ("is empty'\n", f"is empty|{'flux ' * 40}'\n", "the sign has 260 characters", "    sign: "),
        ("flux.Lost: tube 17 of lab.cfg is empty", "flux.Full: tube 17", "the verdict on its example is unexplained", EXAMPLE[:14]),
        ("flux.Burst: bang", "flux.Lost: tube 1 of b is empty", "case burst: its example is answered by case empty",
         "    example: 'flux.Burst: bang'"),
        ("'A tube burst.', zh", "'A tube burst at {step}.', zh",
         "case burst: no value for {step} in its example, which is answered by no case", "    example: 'flux.Burst: bang'"),
        (EXPECT, "", "case empty: no expect; if this answer is right, add expect: 'Tube 17 of lab.cfg is empty.'", "- id: empty"),
        (EXPECT, "    expect: Tube 18\n", "expect differs from the answer: 'Tube 17 of lab.cfg is empty.", "expect: 'Tube 17"),
        ("`flux.pump(tube)`.'}", "`flux.pump(tube)`.', zh: '泵。'}",
         "expect differs from the Chinese answer: '泵 main_pump 撑破了管。", "    expect: {en: 'The pump"),
        ("Tube {tube} of {path}", f"Tube {{tube}} {'of all ' * 18}in {{path}}", "the answer to its example has 42 words",
         "says: {en: 'Tube"),
        (DO, f"en: '{'Fill ' * 21}.'", "the step has 22 words, more than 20", "Fill tube"),
        (DO, "en: 'Fill it on HOST.'", "the placeholder 'HOST' must be filled in", "Fill tube"),
        ("run: 'fill {path} {tube}'", "run: 'fill /path/to/tube'", "the placeholder '/path/to' must be", "Fill tube"),
        ("run: 'fill {path} {tube}'", "run: 'fill {code}'", "{code} is not a single word, so this command is never shown",
         "Fill tube"),
        ("tube (?P<tube>\\d+) of", "tube (?P<tube>\\d+ of)", "because a value in it is not a plain word", "Fill tube"),
        (DO, "en: 'Fill tube {tubes}.'", "nothing fills the slot {tubes}", "Fill tube"),
        (DO, "en: 'Fill tube {tube_2}.'", "{tube_2} is not a slot", "Fill tube"),
        ("{frames: ", "{frame: ", "no fact has the name 'frame', so the condition is never true", "    when: {frames"),
        ("    search_in: exception\n    says", "    search_in: exception\n    when: {words: '\\w'}\n    says",
         "the condition is true for any text and fills no slot", "says: {en: 'Tube"),
        ("_pump)\\b'}", "_pump)(?=x)'}", "RE2 rejects", "    when: {frames"),
        ("(?P<tube>", "(?P<Tube>", "the group 'Tube' cannot fill a slot", "    sign: "),
        ("(?P<tube>", "(?P<where>", "a group named 'where' hides the fact of that name", "- id: empty"),
        ("- id: burst\n", "- id: empty\n", "the case id 'empty' appears twice", "- id: burst\n".strip()),
    ],
)  # fmt: skip
def test_a_broken_rule_is_reported_with_its_line(old: str, new: str, problem: str, at: str, tmp_path: Path) -> None:
    lines = [number for number, found in enumerate(MODEL.splitlines(), 1) if at in found]
    found = checked(tmp_path, (old, new)).problems
    assert any(problem in item and int(item.split(":")[1]) in lines for item in found), found


def test_a_case_after_one_that_always_holds_is_reported(tmp_path: Path) -> None:
    again = MODEL[MODEL.index("  - id: empty") : MODEL.index("  - id: burst-in-pump")].replace("id: empty", "id: same")
    found = checked(tmp_path, ("  - id: burst-in-pump", f"{again}  - id: burst-in-pump")).problems
    assert any("case same is never selected: empty before it always applies too" in item for item in found)
    narrower = again.replace("    says:", "    when: {step: true}\n    says:")
    found = checked(tmp_path, ("  - id: empty", f"{narrower}  - id: empty")).problems
    assert not any("is never selected" in item for item in found)


def test_chinese_may_follow_later_in_a_folder_of_ones_own(tmp_path: Path) -> None:
    report = checked(tmp_path, (", zh: '有一根管破裂。'", ""), (", zh: 通量管为空", ""))
    assert report.problems == []
    assert [found.partition(": ")[2] for found in report.warnings] == [
        "no Chinese in 'A flux tube is empty'",
        "case burst: no Chinese for 'A tube burst.'",
    ]


def test_a_sign_that_no_example_shows_is_listed(tmp_path: Path) -> None:
    report = checked(tmp_path, ("  - regex: 'flux\\.Burst: '\n", "  - regex: 'flux\\.Burst: '\n  - text: 'tube jam'\n"))
    assert report.unproved == [f"{FILE}:8: tube jam"]
    assert report.problems == []


def test_a_step_is_shown_only_where_its_condition_holds(tmp_path: Path) -> None:
    steps = (
        ("Look at rank {rank}.", "{rank: true}"),
        ("Go.", "{rank: false}"),
        ("Open {folder}.", "{log: 'File \"(?P<folder>lab)'}"),
        ("Stop.", "{log: nothing like it}"),
    )
    do = "".join(f"      - {{en: '{step}', zh: 走。, when: {when}}}\n" for step, when in steps[:3])
    more = f"      - {{en: '{steps[3][0]}', zh: 停。, when: {steps[3][1]}}}\n"
    all_four = do + more  # of the first two, which want a fact known and unknown, one is shown
    fewer = do.rpartition("      - ")[0] + more
    for shown, lines in ((["Go.", "Open lab."], do), (["Go."], fewer), (["Go.", "Open lab."], all_four)):
        report = checked(tmp_path, ("    source: 'flux 1.2, flux/pump.py'", f"    do:\n{lines}    source: 'flux 1.2'"))
        assert report.problems == []
        assert [each.do for each in report.answers["quantum.tube", "burst-in-pump"].steps] == shown


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("step", True),
        ("caller_code", True),
        ("gpu_model", True),
        ("numpy_version", True),
        ("words", False),
        ("it", False),
    ],
)
def test_facts_have_names(name: str, known: bool) -> None:
    assert is_fact(name, frozenset(known_slots(built_in_knowledge().vocabulary))) is known


ALSO = """\
    also:
      - sign: 'flux\\.Lost: no fluid in tube (?P<tube>\\d+) of (?P<path>[^\\n]+)'
        example: 'flux.Lost: no fluid in tube 4 of my.cfg'
    retry: no
"""


def test_a_case_has_further_wordings_each_with_its_example(tmp_path: Path) -> None:
    report = checked(tmp_path, ("    retry: no\n", ALSO))
    assert report.problems == report.unproved == []
    assert (report.in_cases, report.without_case) == (2, 1)


FINDING = """\
  - id: burst
    signs:
      - sign: 'flux\\.Burst: '
        example: 'flux.Burst: no tube left'
"""


def test_a_case_without_a_sign_holds_signs_that_find_the_entry(tmp_path: Path) -> None:
    changes = (("signs:\n  - regex: 'flux\\.Burst: '\n", ""), ("  - id: burst\n", FINDING))
    report = checked(tmp_path, *changes)
    assert report.problems == report.unproved == []
    assert (report.in_cases, report.without_case) == (2, 0)
    # The narrower case goes on speaking of a failure that the sign finds.
    assert report.answers["quantum.tube", "burst-in-pump"].case == "burst-in-pump"
    wrong = (*changes, ("'flux.Burst: no tube left'", "'flux.Lost: tube 4 of my.cfg is empty'"))
    assert any("its example is answered by case empty" in found for found in checked(tmp_path, *wrong).problems)
    none = (*changes, ("\n        example: 'flux.Burst: no tube left'", ""))
    assert any("case burst: no example" in found for found in checked(tmp_path, *none).problems)


def test_a_case_has_either_a_sign_or_signs_that_find_the_entry(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="put further wordings of that into `also`"):
        checked(tmp_path, ("    retry: no\n", "    signs: [{sign: tube, example: tube}]\n    retry: no\n"))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("\n        example: 'flux.Lost: no fluid in tube 4 of my.cfg'", "", "case empty: no example"),
        (
            "'flux.Lost: no fluid in tube 4 of my.cfg'",
            "'flux.Burst: bang bang'",
            "its example is answered by case burst",
        ),
    ],
    ids=["no example", "example of another case"],
)
def test_a_wording_without_proof(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in ALSO
    report = checked(tmp_path, ("    retry: no\n", ALSO.replace(old, new)))
    assert any(problem in text for text in report.problems), report.problems
