"""Message forms: what is said of a message that no case knows, by its wording."""

from pathlib import Path

import pytest

from tests.built_in import built_in_knowledge
from torchtriage.answer.localized_verdict import localized
from torchtriage.domain.verdict import Answer, Verdict
from torchtriage.engine import Engine
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import BUILT_IN, checks
from torchtriage.knowledge.cache import cache_folder
from torchtriage.knowledge.loader import load
from torchtriage.reading.sources import from_bytes

CALLED = (
    'Traceback (most recent call last):\n  File "/home/ada/proj/train.py", line 184, in main\n'
    "    trainer = build_trainer(cfg)\n"
    '  File "/opt/venv/lib/python3.11/site-packages/foolib/trainer.py", line 31, in build_trainer\n'
    "    raise {kind}(text)\n{kind}: {text}\n"
)


def verdict(engine: Engine, kind: str, text: str) -> Verdict:
    return engine.triage(from_bytes(CALLED.format(kind=kind, text=text).encode()))


def answer(engine: Engine, kind: str, text: str) -> Answer:
    reply = verdict(engine, kind, text).answer
    assert reply is not None
    return reply


def test_numbers_that_do_not_divide_are_worked_out(engine: Engine) -> None:
    reply = answer(engine, "ValueError", "hidden_size (1000) must be divisible by num_heads (12)")
    assert reply.form == "not-divisible"
    assert reply.says.startswith("hidden_size 1000 is not a multiple of num_heads 12: 1000 = 83 × 12 + 4.")
    assert [step.do for step in reply.steps] == [
        "Set hidden_size to 996 or 1008.",
        "Or keep it and set num_heads to 10.",
    ]
    assert "Raised in foolib/trainer.py:31 (build_trainer), called from ada/proj/train.py:184" in reply.says


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CUDA streams require Linux", "CUDA streams require Linux."),
        ("packed batches are not supported with alibi", "packed batches are not supported with alibi"),
        ("You should never need to index a layout", "RuntimeError: You should never need to index a layout."),
        ("Expected the generator to be exhausted, but it was not!", "RuntimeError: Expected the generator to be"),
    ],
)
def test_a_sentence_keeps_the_verb_of_the_message(engine: Engine, text: str, said: str) -> None:
    assert answer(engine, "RuntimeError", text).says.startswith(said)


def test_the_library_line_below_which_compiled_code_failed_is_reported(engine: Engine) -> None:
    log = (
        'Traceback (most recent call last):\n  File "/home/ada/proj/train.py", line 31, in main\n    engine.step()\n'
        '  File "/opt/venv/lib/python3.12/site-packages/foolib/flow.py", line 601, in _step\n'
        "    param.data.narrow(1, 0, n)\nRuntimeError: narrow() cannot be applied to a 0-dim tensor.\n"
    )
    reply = engine.triage(from_bytes(log.encode())).answer
    assert reply is not None
    assert (
        "Raised in foolib/flow.py:601 (_step): `param.data.narrow(1, 0, n)`, called from ada/proj/train.py:31"
        in reply.says
    )
    assert reply.steps[0].run == "pip show foolib"


@pytest.mark.parametrize(
    ("written", "step"), [("cosin", "Write `cosine` instead of `cosin`."), ("qqq", "Choose one of them where `qqq`")]
)
def test_a_mistyped_choice_is_corrected_only_if_one_is_near(engine: Engine, written: str, step: str) -> None:
    reply = answer(engine, "ValueError", f"Unknown schedule '{written}'. Choose from ['cosine', 'linear', 'constant']")
    assert reply.steps[0].do.startswith(step)


def test_a_message_without_an_entry_gets_sentence_steps_and_no_retry(engine: Engine) -> None:
    said = verdict(engine, "RuntimeError", "checkpoint was saved with 16 ranks but the current run has 8 ranks")
    assert said.root_cause is not None
    assert said.root_cause.entry is None
    assert said.answer is not None
    assert said.answer.says.startswith("It was saved with 16 ranks, and this run has 8. Raised in foolib/trainer.py:31")
    assert (said.answer.unknown, said.action.retry, said.action.advice) == (None, "no", "fix-first")


def test_a_case_that_knows_the_message_goes_before_any_form(engine: Engine) -> None:
    reply = answer(engine, "TypeError", "build_trainer() got an unexpected keyword argument 'rope'")
    assert (reply.case, reply.form) == ("unexpected-keyword", None)


def test_a_wording_that_no_form_knows_keeps_the_general_answer(engine: Engine) -> None:
    reply = answer(engine, "ValueError", "Zwölf Boxkämpfer jagen Viktor")
    assert (reply.case, reply.form) == ("library-refusal", None)


def test_a_stored_answer_is_said_in_the_readers_language(engine: Engine) -> None:
    said = verdict(engine, "NotImplementedError", "Packing is not supported with sliding windows")
    chinese = localized(said, built_in_knowledge(), "zh")
    assert chinese.answer is not None
    assert chinese.answer.says.startswith("Packing 不能与 sliding windows 一起使用")
    assert chinese.action.reason == "不先消除原因，同样的任务会再次失败。"


def test_a_value_from_the_log_does_not_get_into_a_command(engine: Engine) -> None:
    reply = answer(engine, "RuntimeError", "fast sampler requires $(reboot) >= 0.3")
    assert all("reboot" not in (step.run or "") for step in reply.steps)


FORM = """title: {{en: Ours, zh: 我们的}}
purpose: Wordings of our own library.
cases:
  - id: ours
    when: {{message: '^quota of (?P<who>\\w+) is used up'}}
    says: {{en: 'The quota of {{who}} is used up.', zh: '{{who}} 的配额已用完。'}}
    source: ours 1.0
    example: 'RuntimeError: quota of ada is used up'
    expect: '{expect}'
"""


def ours(folder: Path, expect: str) -> Path:
    (folder / "_forms").mkdir()
    (folder / "_forms" / "ours.yaml").write_text(FORM.format(expect=expect), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_a_folder_of_ones_own_adds_a_form_that_is_proved(tmp_path: Path) -> None:
    folders = [BUILT_IN, ours(tmp_path, "The quota of ada is used up.")]
    knowledge = load(folders)
    assert checks.check(knowledge, folders, only=["_forms.ours"]).problems == []
    reply = answer(Engine(knowledge, cache_folder()), "RuntimeError", "quota of eve is used up")
    assert (reply.form, reply.says.split(" Raised")[0]) == ("ours", "The quota of eve is used up.")


@pytest.mark.slow
def test_a_form_that_says_something_else_of_its_example_is_refused(tmp_path: Path) -> None:
    folders = [BUILT_IN, ours(tmp_path, "The quota of eve is used up.")]
    found = checks.check(load(folders), folders, only=["_forms.ours"]).problems
    assert found == ["_forms/ours.yaml:9: case ours: expect differs from the answer: 'The quota of ada is used up.'"]


def test_a_form_with_a_sign_is_refused(tmp_path: Path) -> None:
    folder = ours(tmp_path, "x")
    path = folder / "_forms" / "ours.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("    when:", "    sign: 'quota'\n    when:"), encoding="utf-8"
    )
    with pytest.raises(KnowledgeError, match="a message form has neither sign nor exclude_hosts"):
        load([BUILT_IN, folder])


BARE = (
    'Traceback (most recent call last):\n  File "/home/ada/proj/train.py", line 184, in main\n'
    "    model = wrap(net, mesh)\n"
    '  File "/opt/venv/lib/python3.11/site-packages/megatron/core/ring_plan.py", line 31, in wrap\n'
    "    assert {check}\n"
)


@pytest.mark.parametrize(
    ("check", "form", "says"),
    [
        ("len(rows) % mesh.size() == 0", "remainder", "`len(rows)` is not a multiple of `mesh.size()`"),
        ("self._plan is not None", "was-none", "`self._plan` is None, and megatron needs it"),
        ("not self.closed", "holds-not", "megatron's own check `not self.closed` is not true"),
    ],
)
@pytest.mark.parametrize("end", ["AssertionError\n", ""])
def test_a_librarys_bare_assertion_is_reported_by_its_condition(
    engine: Engine, check: str, form: str, says: str, end: str
) -> None:
    reply = engine.triage(from_bytes((BARE.format(check=check) + end).encode())).answer
    assert reply is not None
    assert reply.form == form
    assert reply.says.startswith(says)
    assert reply.steps[0].run == "print(net, mesh, flush=True)"


INSIDE = (
    'Traceback (most recent call last):\n  File "/home/ada/proj/train.py", line 184, in main\n'
    "    y = torch.movedim(x, 0, dims)\n"
    '  File "/opt/venv/lib/python3.11/site-packages/torch/{path}", line 31, in {function}\n'
    "    raise {kind}(\n{kind}: {text}\n"
)


@pytest.mark.parametrize(
    ("path", "function", "kind", "text", "entry", "case"),
    [
        (
            "distributed/tensor/_ops/_view_ops.py",
            "dim_movedim",
            "AssertionError",
            "Expected len(input) == len(destination), got 1 != 2",
            "fsdp.error",
            "dtensor-rule-check",
        ),
        (
            "distributed/_functional_collectives.py",
            "all_reduce_inplace",
            "AssertionError",
            "group 5 takes no such tensor",
            "collective.arguments",
            "functional-collective-check",
        ),
        (
            "distributed/_symmetric_memory/__init__.py",
            "_fused_all_gather_matmul_impl",
            "ValueError",
            "A_shard must have a known stride",
            "usage.distributed-check",
            "symmetric-memory",
        ),
    ],
)
def test_a_check_inside_a_part_of_a_library_is_reported_by_that_part(
    engine: Engine, path: str, function: str, kind: str, text: str, entry: str, case: str
) -> None:
    result = engine.triage(from_bytes(INSIDE.format(path=path, function=function, kind=kind, text=text).encode()))
    assert result.root_cause is not None
    assert result.answer is not None
    assert (result.root_cause.entry, result.answer.case, result.answer.form) == (entry, case, None)
    assert text in result.answer.says
    assert function in result.answer.says
    assert "train.py:184" in " ".join((result.answer.says, *(step.do for step in result.answer.steps)))


@pytest.mark.parametrize(
    "text",
    [
        "The maximum number of rendezvous nodes (2) must be greater than or equal to the minimum number of rendezvous nodes (4).",
        "The rendezvous configuration option 'read_timeout' does not represent a valid integer value.",
    ],
)
def test_a_wrong_option_of_the_rendezvous_is_not_a_unreachable_store(engine: Engine, text: str) -> None:
    log = INSIDE.format(path="distributed/elastic/rendezvous/api.py", function="__init__", kind="ValueError", text=text)
    result = engine.triage(from_bytes(log.encode()))
    assert result.root_cause is not None
    assert result.root_cause.entry == "elastic.launch-args"
    assert result.answer is not None
    assert "store" not in result.answer.says


def test_a_pronoun_is_not_a_name_of_a_setting(engine: Engine) -> None:
    text = "You chose a plan that nobody has. It must be one of layer, rms or none."
    assert "Set It" not in " ".join(step.do for step in answer(engine, "ValueError", text).steps)


def test_a_traceback_that_the_log_breaks_off_says_so(engine: Engine) -> None:
    log = BARE.format(check="x").replace("    assert x\n", "    return run(\n").replace("megatron/core", "foolib")
    reply = engine.triage(from_bytes(log.encode())).answer
    assert reply is not None
    assert reply.says.startswith("The log ends inside this traceback, before the line that names the exception.")
    assert "foolib/ring_plan.py:31 (wrap)" in reply.says
    assert [step.do for step in reply.steps] == [
        "Read or submit the output below line 5: its next lines name the exception."
    ]
    chinese = localized(engine.triage(from_bytes(log.encode())), built_in_knowledge(), "zh").answer
    assert chinese is not None
    assert chinese.says.startswith("日志在这段 traceback 中间结束，没有写出异常的那一行。")
