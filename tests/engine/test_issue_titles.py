"""The title that a person put over a log tells what went wrong where the log below shows nothing."""

from collections.abc import Callable

import pytest

from tests.engine.test_engine import triage
from tests.logs import BANNER, steps, traceback
from torchtriage.engine import Engine

ERROR = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"


@pytest.mark.parametrize(
    "mark",
    ["### ", "# ", "**", "Title: ", "Subject: Re: ", "[Bug] ", "[Bug]: ", "### [Question] ", "🐛 Bug: ", "标题："],
)
def test_a_title_over_a_healthy_log_shows_the_cause(engine: Engine, mark: str) -> None:
    root = triage(engine, f"{mark}{ERROR}", BANNER, steps(range(4))).root_cause
    assert root is not None
    assert (root.entry, root.evidence[0].line) == ("cuda.oom", 1)
    assert not any("continued" in reason for reason in root.reasons)


def test_an_exception_above_a_pasted_log_is_its_title(engine: Engine, decided: Callable[[], set[str]]) -> None:
    assert triage(engine, ERROR, "", steps(range(4))).outcome == "explained"
    assert triage(engine, ERROR, steps(range(4))).outcome == "healthy"
    assert {"trained-on"} <= decided()


@pytest.mark.parametrize("said", ["训练到中途：", "多卡训练报错", "训练到第 3 个 epoch 出现 "])
def test_chinese_words_before_an_exception_make_it_a_title(engine: Engine, said: str) -> None:
    root = triage(engine, f"{said}{ERROR}", "", steps(range(4))).root_cause
    assert root is not None
    assert (root.entry, root.evidence[0].line) == ("cuda.oom", 1)
    assert triage(engine, f"retrying after {ERROR}", "", steps(range(4))).outcome == "healthy"


def test_a_title_may_be_no_more_than_an_exceptions_name(engine: Engine) -> None:
    verdict = triage(engine, "# torch.cuda.OutOfMemoryError", "", steps(range(4)))
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "cuda.oom"
    assert triage(engine, "# subprocess.CalledProcessError", "", "It trains for an hour.").outcome == "unexplained"
    assert triage(engine, "# What a ValueError is", "", steps(range(4))).outcome == "healthy"


def test_a_title_that_no_entry_knows_is_unexplained(engine: Engine) -> None:
    verdict = triage(engine, "### ShoeError: the left one is missing", BANNER, steps(range(4)))
    assert verdict.outcome == "unexplained"


def test_the_log_itself_says_more_than_its_title(engine: Engine) -> None:
    verdict = triage(engine, f"### {ERROR}", steps(range(4)), traceback("KeyError: 'image'", prefix="[rank3]: "))
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.rank) == ("usage.python-error", 3)


def test_an_exception_that_quotes_what_a_child_raised_is_not_a_title(engine: Engine) -> None:
    child = traceback("RuntimeError: CUDA error: invalid device ordinal")
    quoted = "-- Process 3 terminated with the following error:"
    root = triage(
        engine, "RuntimeError: An issue was found when launching the training: ", "", quoted, child
    ).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("cuda.invalid-ordinal", 3)


@pytest.mark.parametrize("title", ["# Training run of Monday", "# Error: this file is generated", "Title: error rates"])
def test_a_title_without_an_exception_shows_nothing(engine: Engine, title: str) -> None:
    assert triage(engine, title, BANNER, steps(range(4))).outcome == "healthy"


def test_a_run_that_ended_well_is_healthy_whatever_its_title(engine: Engine) -> None:
    assert triage(engine, f"### {ERROR}", steps(range(4)), "training finished").outcome == "healthy"


@pytest.mark.parametrize("title", ["# Missing key in checkpoint state_dict", '[Bug] FSDP2 "got mixed torch.Tensor and DTensor"'])  # fmt: skip
def test_a_heading_names_the_cause_when_the_traceback_is_cut_off(
    engine: Engine, title: str, decided: Callable[[], set[str]]
) -> None:
    cut = traceback("", prefix="[rank3]: ")[:-1]
    root = triage(engine, title, "", steps(range(4)), cut).root_cause
    assert root is not None
    assert (root.entry, root.evidence[0].line) in (("checkpoint.key-mismatch", 1), ("fsdp.error", 1))
    assert {"heading"} <= decided()
    assert triage(engine, "# The longer runs", "", steps(range(4)), cut).outcome == "unexplained"
    assert triage(engine, title, "", steps(range(4))).outcome == "healthy"
    result = traceback("KeyError: 'image'", prefix="[rank3]: ")
    assert triage(engine, title, "", steps(range(4)), result).root_cause.entry == "usage.python-error"  # type: ignore[union-attr]
