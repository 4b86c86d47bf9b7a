"""Which case speaks, with a knowledge base of one entry; the built-in cases are proved by their own examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.built_in import small_bases
from tests.logs import text, traceback
from torchtriage.domain.verdict import Answer
from torchtriage.engine import Engine
from torchtriage.knowledge.loader import load
from torchtriage.reading.sources import from_bytes

ENTRY = """\
id: flux.lost
kind: cause
title: {en: The flux was lost, zh: 通量丢失}
area: flux
owner: user
signs:
  - text: 'flux.Lost: pipe'
action: {advice: fix-first, retry: no}
causes:
  - {en: The tube leaks., zh: 管子漏了。}
fixes:
  - title: {en: Close the tube, zh: 关上管子}
    commands: ['flux close --host {host}']
examples: {match: ['flux.Lost: pipe 1', 'flux.Lost: tube 2 of 3'], no_match: ['flux.Found: 1']}
cases:
  - id: many-tubes
    sign: 'flux\\.Lost: tube (?P<lost>\\d+) of (?P<tubes>\\d{2,})'
    says: {en: 'Tube {lost} of many ({tubes}) leaks.', zh: '{tubes} 根管子中的第 {lost} 根漏了。'}
    do:
      - {en: 'Close tube {lost}.', zh: '关上第 {lost} 根管子。', run: 'flux close {lost}'}
      - {en: 'Read the log of {pod}.'}
      - {en: 'Look at the file.', run: 'less {path}'}
    retry: yes
  - id: while-saving
    sign: 'flux\\.Lost: tube (?P<lost>\\d+)'
    when: {frames: 'save_(?P<what>\\w+)', rank: true}
    says: {en: 'Tube {lost} leaked while {what} was saved on rank {rank}.'}
  - id: tube
    sign: 'flux\\.Lost: tube (?P<lost>\\d+)'
    says: {en: 'Tube {lost} leaks[[ on {host}]].'}
    unknown: {en: 'Since when, this log does not show.', zh: '从何时开始，日志没有说明。'}
  - id: pipe-with-rank
    when: {words: 'pipe (?P<pipe>\\d+)', rank: true}
    says: {en: 'Pipe {pipe} of rank {rank} leaks.'}
  - id: vessel
    sign: 'flux\\.Lost: vessel'
    says: {en: 'A vessel leaks.'}
    do:
      - {en: 'Drain it.', unless: {log: 'drained'}}
      - {en: 'Fill it.', unless: {function: 'refill'}}
  - id: any
    says: {en: 'Something leaks at {where}.'}
"""


@pytest.fixture(scope="module")
def flux(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Answer]:
    folder: Path = tmp_path_factory.mktemp("knowledge")
    (folder / "flux").mkdir()
    (folder / "flux" / "lost.yaml").write_text(ENTRY, encoding="utf-8")
    engine = Engine(load([folder]), small_bases())

    def answer(
        raised: str, prefix: str = "", function: str = "main", lang: str = "en", above: tuple[str, ...] = ()
    ) -> Answer:
        frames = (("/job/train.py", 30, function, "tube.drain()"),)
        log = from_bytes(text([*above], traceback(raised, frames, prefix)))
        verdict = engine.triage(log, "zh" if lang == "zh" else "en")
        assert verdict.answer is not None
        return verdict.answer

    return answer


def test_the_first_case_whose_sign_is_shown_speaks_with_its_groups(flux: Callable[..., Answer]) -> None:
    answer = flux("flux.Lost: tube 7 of 12")
    assert answer.case == "many-tubes"
    assert answer.says == "Tube 7 of many (12) leaks. Raised at /job/train.py:30: `tube.drain()`."
    assert {fact.name: (fact.value, fact.line) for fact in answer.facts if fact.name in ("lost", "tubes")} == {
        "lost": ("7", 4),
        "tubes": ("12", 4),
    }


def test_a_step_with_an_open_slot_is_left_out_and_so_is_an_open_command(flux: Callable[..., Answer]) -> None:
    steps = flux("flux.Lost: tube 7 of 12").steps
    assert [(step.do, step.run) for step in steps] == [
        ("Close tube 7.", "flux close 7"),
        ("Look at the file.", None),
    ]


def test_a_case_speaks_where_its_conditions_hold(flux: Callable[..., Answer]) -> None:
    saving = flux("flux.Lost: tube 7", "[rank3]: ", "save_model")
    assert saving.says.startswith("Tube 7 leaked while model was saved on rank 3.")
    assert flux("flux.Lost: tube 7", "", "save_model").case == "tube"
    assert flux("flux.Lost: tube 7", "[rank3]: ", "main").case == "tube"


def test_what_the_log_does_not_show_is_said(flux: Callable[..., Answer]) -> None:
    assert flux("flux.Lost: tube 7").unknown == "Since when, this log does not show."
    assert flux("flux.Lost: tube 7", lang="zh").unknown == "从何时开始，日志没有说明。"


def test_a_branch_mentions_what_signs_without_a_case_find(flux: Callable[..., Answer]) -> None:
    assert flux("flux.Lost: pipe 4", "[rank3]: ").says.startswith("Pipe 4 of rank 3 leaks.")


def test_the_last_case_is_the_fallback(flux: Callable[..., Answer]) -> None:
    assert flux("flux.Lost: pipe 4").says == "Something leaks at /job/train.py:30. The line: `tube.drain()`."


def test_steps_are_the_entrys_fixes_where_a_case_has_none_and_open_commands_go(flux: Callable[..., Answer]) -> None:
    assert [(step.do, step.run) for step in flux("flux.Lost: tube 7").steps] == [("Close the tube", None)]


def test_chinese_that_is_missing_is_said_in_english(flux: Callable[..., Answer]) -> None:
    assert flux("flux.Lost: tube 7", lang="zh").says.startswith("Tube 7 leaks.")


def test_the_retry_is_the_cases(flux: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "flux").mkdir()
    (tmp_path / "flux" / "lost.yaml").write_text(ENTRY, encoding="utf-8")
    engine = Engine(load([tmp_path]), small_bases())
    retries = [
        engine.triage(from_bytes(f"flux.Lost: {words}\n".encode())).action.retry for words in ("tube 7 of 12", "tube 7")
    ]
    assert retries == ["yes", "no"]


def test_secrets_in_groups_are_taken_out(flux: Callable[..., Answer]) -> None:
    secret = "hf_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1W"
    answer = flux(f"flux.Lost: tube 7 of 12 with token {secret}")
    assert secret not in str(answer)


LIBRARY = """\
Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/flux.py", line 9, in wait
    self.work.wait()
flux.Lost: tube 2 of 12
"""


@pytest.mark.parametrize("role", ["roles: [peer-loss]", "roles: [timeout]", ""])
def test_where_a_library_raised_is_not_said_of_what_a_rank_only_reports(tmp_path: Path, role: str) -> None:
    (tmp_path / "flux").mkdir()
    (tmp_path / "flux" / "lost.yaml").write_text(ENTRY.replace("owner: user\n", f"owner: user\n{role}\n"))
    answer = Engine(load([tmp_path]), small_bases()).triage(from_bytes(LIBRARY.encode())).answer
    assert answer is not None
    assert ("Raised at torch/flux.py:9" in answer.says) is (not role)


@pytest.mark.parametrize(("above", "step"), [(0, "above line 1;"), (9, "above line 10 of the log")])
def test_where_little_was_handed_in_more_is_asked_for(engine: Engine, above: int, step: str) -> None:
    log = "".join(f"step {number} loss 2.1\n" for number in range(above)) + "gizmo.TornError: 3 of 4\n"
    answer = engine.triage(from_bytes(log.encode())).answer
    assert answer is not None
    assert [step in one.do for one in answer.steps] == [True]


def test_a_case_whose_sign_was_wrapped_speaks_by_its_conditions(tmp_path: Path) -> None:
    sign = r"sign: 'flux\.Lost: tube (?P<lost>\d+) of (?P<tubes>\d{2,})'"
    assert sign in ENTRY
    torn = r"sign: 'flux\.Lost: duct \d+ of \d{2,} [^\n]*torn'"
    own = ENTRY.replace(sign, torn + "\n    when: {words: '" + r"duct (?P<lost>\d+) of (?P<tubes>\d{2,})'}")
    (tmp_path / "flux").mkdir()
    (tmp_path / "flux" / "lost.yaml").write_text(own.replace("text: 'flux.Lost: pipe'", "text: 'flux.Lost: '"))
    answer = Engine(load([tmp_path]), small_bases()).triage(from_bytes(b"flux.Lost: duct 3 of 12 was\n torn\n")).answer
    assert answer is not None
    assert answer.says.startswith("Tube 3 of many (12) leaks.")


@pytest.mark.parametrize(
    "condition", ["{log: 'Traceback|step'}", "{words: '(?P<tubes>\\d\\d)|\\z'}", "{frames: 'main'}"]
)
def test_a_case_does_not_speak_without_its_sign_by_what_any_failure_shows(tmp_path: Path, condition: str) -> None:
    sign = r"sign: 'flux\.Lost: tube (?P<lost>\d+) of (?P<tubes>\d{2,})'"
    torn = r"sign: 'flux\.Lost: duct \d+ of \d{2,} [^\n]*torn'" + f"\n    when: {condition}"
    says = "says: {en: 'Tube {lost} of many ({tubes}) leaks.', zh: '{tubes} 根管子中的第 {lost} 根漏了。'}"
    assert sign in ENTRY
    assert says in ENTRY
    (tmp_path / "flux").mkdir()
    own = ENTRY.replace(sign, torn).replace(says, "says: {en: 'A duct is torn.'}").replace("tube {lost}", "it")
    (tmp_path / "flux" / "lost.yaml").write_text(own.replace("flux close {lost}", "flux close"), encoding="utf-8")
    log = text(traceback("flux.Lost: pipe 4", (("/job/train.py", 30, "main", "tube.drain()"),)))
    answer = Engine(load([tmp_path]), small_bases()).triage(from_bytes(log)).answer
    assert answer is not None
    assert answer.case == "any"


def test_facts_are_those_of_the_exception_that_shows_the_sign(tmp_path: Path) -> None:
    (tmp_path / "flux").mkdir()
    (tmp_path / "flux" / "lost.yaml").write_text(ENTRY, encoding="utf-8")
    child = traceback("flux.Lost: pipe 4", (("/job/child.py", 5, "work", "pipe.fill()"),))
    parent = traceback("flux.Lost: tube 7", (("/job/train.py", 30, "main", "tube.drain()"),))
    answer = Engine(load([tmp_path]), small_bases()).triage(from_bytes(text(child, "child 0 ended", parent))).answer
    assert answer is not None
    assert answer.says == "Tube 7 leaks. Raised at /job/train.py:30: `tube.drain()`."


def test_a_line_that_the_sentence_names_is_not_reported_twice(tmp_path: Path) -> None:
    (tmp_path / "flux").mkdir()
    own = ENTRY.replace("'Tube {lost} of many ({tubes}) leaks.'", "'Tube {lost} leaks at /job/train.py:3{tubes}.'")
    (tmp_path / "flux" / "lost.yaml").write_text(own, encoding="utf-8")
    engine = Engine(load([tmp_path]), small_bases())

    def says(raised: str) -> str:
        answer = engine.triage(from_bytes(text(traceback(raised, (("/job/train.py", 310, "main", "go()"),))))).answer
        assert answer is not None
        return answer.says

    assert says("flux.Lost: tube 7 of 10") == "Tube 7 leaks at /job/train.py:310. The line: `go()`."
    assert says("flux.Lost: tube 7 of 104").endswith("Raised at /job/train.py:310: `go()`.")


def test_the_librarys_line_is_reported_where_the_interpreter_stopped_there(tmp_path: Path) -> None:
    (tmp_path / "flux").mkdir()
    own = ENTRY.replace("flux\\.Lost", "KeyError").replace("flux.Lost", "KeyError")
    (tmp_path / "flux" / "lost.yaml").write_text(own, encoding="utf-8")
    engine = Engine(load([tmp_path]), small_bases())

    def says(line: str) -> str:
        library = ("/opt/env/lib/python3.11/site-packages/tinyflux/core.py", 9, "drain", line)
        raised = traceback("KeyError: tube 7", (("/job/train.py", 30, "main", "tube.drain()"), library))
        answer = engine.triage(from_bytes(text(raised))).answer
        assert answer is not None
        return answer.says

    assert says("TUBES[name]").endswith(
        "Raised in tinyflux/core.py:9 (drain): `TUBES[name]`, called from /job/train.py:30: `tube.drain()`."
    )
    for line in ("raise KeyError(name)", "return torch._C._tubes[name]", "return lookup(name, default)", "find("):
        assert says(line).endswith(
            "Raised in tinyflux/core.py:9 (drain), called from /job/train.py:30: `tube.drain()`."
        )


def test_where_no_case_holds_the_title_goes_with_the_message(tmp_path: Path) -> None:
    (tmp_path / "flux").mkdir()
    own = ENTRY[: ENTRY.index("  - id: any")]
    (tmp_path / "flux" / "lost.yaml").write_text(own, encoding="utf-8")
    log = text(traceback("flux.Lost: pipe 4", (("/job/train.py", 30, "main", "tube.drain()"),)))
    answer = Engine(load([tmp_path]), small_bases()).triage(from_bytes(log)).answer
    assert answer is not None
    assert answer.case is None
    assert answer.says.startswith("The flux was lost: pipe 4. The tube leaks.")


def test_a_first_step_is_not_joined_to_one_that_is_not_shown(engine: Engine) -> None:
    raised = (
        "[rank0]: AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
        "gradient_acc_step * world_size 8 != 2 * 1 * 1\n"
    )
    english, chinese = (engine.triage(from_bytes(raised.encode()), lang).answer for lang in ("en", "zh"))
    assert english is not None
    assert chinese is not None
    assert english.steps[0].do[:1].isupper()
    assert not english.steps[0].do.startswith("Or ")
    assert not chinese.steps[0].do.startswith("或")


def test_what_failed_in_a_librarys_line_is_reported_with_that_line_and_the_users_call(engine: Engine) -> None:
    frames = [
        ("/job/train.py", 30, "main", "plan = weave.plan(net, rows)"),
        ("/opt/venv/lib/python3.11/site-packages/weave/plan.py", 9, "build", 'kind = self.kinds["mesh"]'),
    ]
    answer = engine.triage(from_bytes(text(traceback("KeyError: 'mesh'", frames)))).answer
    assert answer is not None
    assert answer.says.startswith("weave looks for 'mesh' in `self.kinds`, which is not there (weave/plan.py:9: `kind")
    assert answer.says.endswith("Called from /job/train.py:30: `plan = weave.plan(net, rows)`.")


def test_an_exception_printed_before_its_traceback_is_reported_with_the_frames_of_that(engine: Engine) -> None:
    said = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.12 GiB. GPU 5 has a total capacity of 23.70 GiB"
        " of which 292.56 MiB is free. Of the allocated memory 22.00 GiB is allocated by PyTorch"
    )
    frames = [
        ("/job/train.py", 155, "train", "optimizer.step()"),
        ("/env/lib/python3.11/site-packages/torch/optim/adam.py", 143, "_init_group", "torch.zeros_like(p)"),
    ]
    again = traceback("torch.OutOfMemoryError: CUDA out of memory", frames)
    answer = engine.triage(from_bytes(text(said, "wandb: Waiting for W&B process to finish", again))).answer
    assert answer is not None
    assert answer.case == "optimizer-states"
    assert "3.12 GiB" in answer.says
    assert "/job/train.py:155" in answer.says


def test_a_step_is_left_out_if_a_condition_of_its_unless_is_met(flux: Callable[..., Answer]) -> None:
    def steps(**given: object) -> list[str]:
        return [step.do for step in flux("flux.Lost: vessel", **given).steps]

    assert steps() == ["Drain it.", "Fill it."]
    assert steps(above=("it was drained",)) == ["Fill it."]
    assert steps(function="refill_it") == ["Drain it."]


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("", True),
        ("+ export HYDRA_FULL_ERROR=1", False),
        ("HYDRA_FULL_ERROR=0", True),
        ("Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.", True),
    ],
)
def test_a_step_that_exports_a_value_the_variable_has_is_left_out(engine: Engine, printed: str, told: bool) -> None:
    raised = "Error in call to target 'src.Net':\nRuntimeError('no pipes')\nfull_key: model"
    answer = engine.triage(from_bytes(text(printed, "Error executing job with overrides: []", raised))).answer
    assert answer is not None
    assert ("export HYDRA_FULL_ERROR=1" in [step.run for step in answer.steps]) is told
