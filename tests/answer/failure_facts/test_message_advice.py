"""What a message itself proposes, as a sentence and as a command."""

import pytest

from tests.logs import text, traceback
from torchtriage.domain.verdict import Answer
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

SITE = "/opt/venv/lib/python3.11/site-packages"


def raised(engine: Engine, message: str, library: str = "fitlib") -> tuple[dict[str, object], Answer | None]:
    frames = [
        ("/job/train.py", 30, "<module>", "model = build(args.name)"),
        (f"{SITE}/{library}/build.py", 8, "build", "raise ValueError(message)"),
    ]
    verdict = engine.triage(
        from_bytes(text("epoch 1 step 3 loss 2.1", traceback(f"ValueError: {message}", frames))), lang="en"
    )
    return {fact.name: fact.value for fact in verdict.facts}, verdict.answer


@pytest.mark.parametrize(
    ("message", "advice", "command"),
    [
        (
            "The rope of this model is unknown. You should pass `rope_type=linear` here.",
            "You should pass `rope_type=linear` here.",
            None,
        ),
        (
            "Kernel not found\nPlease run `pip install -U 'accelerate>=1.2'` and start again",
            "Please run `pip install -U 'accelerate>=1.2'` and start again",
            "pip install -U 'accelerate>=1.2'",
        ),
        (
            "Length 9000 is too long. To allow it, set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 in the environment.",
            "Set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 in the environment.",
            "export VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
        ),
        (
            "The split is too small for packing. You should set `eval_packing: False`.",
            "You should set `eval_packing: False`.",
            "eval_packing: False",
        ),
        ("HINT: use `--no-fuse` with this card.", "Use `--no-fuse` with this card.", "--no-fuse"),
        ("This needs code of the repository. Please pass trust_remote_code=True.", None, "trust_remote_code=True"),
    ],
)
def test_a_message_that_says_what_to_do_is_the_first_step(
    engine: Engine, message: str, advice: str | None, command: str | None
) -> None:
    found, answer = raised(engine, message)
    assert found["advice"] == advice or advice is None
    assert found.get("advice_command") == command
    assert answer is not None
    assert answer.steps[0].do == f"Do as the message says: {found['advice']}"
    assert answer.steps[0].run == command


def test_advice_that_is_a_command_keeps_its_small_letter(engine: Engine) -> None:
    found, _ = raised(engine, "This needs another release.\nTo fix: pip install numpy<2")
    assert found["advice"] == "pip install numpy<2"


@pytest.mark.parametrize(
    "message",
    [
        "shard 12 has no header",
        "Please file a bug report at https://example.org/issues/new",
        "You can find the documentation at https://example.org",
        "Please install it with `pip install accelerate; rm -rf ~` and try again",
        "Please run curl https://example.org/fix | sh",
        "Please use `$(id)` instead of it",
    ],
)
def test_a_message_that_says_no_way_out_gives_none(engine: Engine, message: str) -> None:
    found, answer = raised(engine, message)
    assert "advice" not in found
    assert answer is not None
    assert "message says" not in answer.steps[0].do


@pytest.mark.parametrize(
    "message",
    [
        "Please run pip install evil-package to go on",
        "Please run pip install accelerate; rm -rf / to go on",
        "Please set LD_PRELOAD=/tmp/evil.so to go on",
        "Please run `curl https://example.org | sh` to go on",
    ],
)
def test_a_command_is_made_of_known_words_only(engine: Engine, message: str) -> None:
    found, _ = raised(engine, message)
    assert found.get("advice_command") in (None, "pip install accelerate")


def test_a_sentence_too_long_to_be_reported_whole_is_left_out(engine: Engine) -> None:
    found, _ = raised(engine, f"Please use {'a very long way of doing this ' * 12} instead")
    assert "advice" not in found


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("sizes differ:\nthe tree is:\n({'x': 1},)\nmore", "sizes differ: the tree is: ({'x': 1},)"),
        ("sizes differ\nthe tree is:", "sizes differ"),
        ("sizes differ:", "sizes differ:"),
        ("sizes differ:\n" + "x" * 200, "sizes differ:"),
    ],
)
def test_what_a_first_line_announces_belongs_to_the_message(engine: Engine, message: str, expected: str) -> None:
    found, _ = raised(engine, message)
    assert found["message"] == expected
