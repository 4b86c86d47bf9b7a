import html
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.logs import traceback
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.matching.near_matches import undo_formatting
from torchtriage.reading.sources import from_bytes

UNUSED = (
    "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. "
    "This error indicates that your module has parameters that were not used in producing loss."
)


def triage(engine: Engine, text: str) -> Verdict:
    return engine.triage(from_bytes(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        UNUSED.replace("in the prior", "in the\nprior"),
        "\n".join(f"> {line}" for line in UNUSED.replace("in the prior", "in the\nprior").split("\n")),
        UNUSED.replace("iteration", "iteraton").replace("indicates", "indicats"),
        UNUSED.replace("to have finished", "that it would have finished"),
        UNUSED.replace("RuntimeError: Expected to have f", "F").replace("reduction", "reducion"),
    ],
    ids=["wrapped", "quoted", "mistyped", "reworded", "cut"],
)
def test_a_distorted_message_is_found_and_at_most_likely(engine: Engine, text: str) -> None:
    root = triage(engine, text).root_cause
    assert root is not None
    assert root.entry == "ddp.unfinished-reduction"
    assert root.confidence != "certain"


def test_a_near_match_says_what_differs(engine: Engine) -> None:
    root = triage(
        engine, UNUSED.replace("reduction in the prior iteration", "reducton in the prior iteraton")
    ).root_cause
    assert root is not None
    assert any("“reducton … iteraton” where the entry has “reduction … iteration”" in reason for reason in root.reasons)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: the parser for harbour manifests expected seventeen containers before the second crane was started",
        "ValueError: one new parameters reduction prior starting that in finished have producing to Expected the",
    ],
)
def test_an_unknown_message_stays_unexplained_or_a_catch_all(engine: Engine, text: str) -> None:
    root = triage(engine, text).root_cause
    assert root is not None
    assert root.entry in (None, "usage.python-error", "usage.value-range")
    assert not any(reason.name == "near" for reason in root.because)


@pytest.mark.parametrize(
    ("text", "opposite"),
    [
        ("RuntimeError: CUDA error: correctable NVLink error detected during the execution", "hw.nvlink"),
        ("RuntimeError: If reserved but allocated memory is large try setting a limit", "cuda.oom"),
        (UNUSED.replace("finished", "unfinished"), "ddp.unfinished-reduction"),
    ],
    ids=["correctable", "allocated", "unfinished"],
)
def test_a_message_that_says_the_opposite_is_not_near(engine: Engine, text: str, opposite: str) -> None:
    root = triage(engine, text).root_cause
    assert root is not None
    assert (root.entry, "near") not in [(opposite, reason.name) for reason in root.because]


def test_a_message_that_a_catch_all_knows_is_near_to_no_other(engine: Engine) -> None:
    raised = (
        'Traceback (most recent call last):\n  File "/home/u/train.py", line 88, in main\n    if acc > self.best:\n'
        "TypeError: '>' not supported between instances of 'float' and 'NoneType'\n"
    )
    verdict = triage(engine, raised)
    assert verdict.root_cause is not None
    assert verdict.answer is not None
    assert (verdict.root_cause.entry, verdict.answer.case) == ("usage.python-error", "compared-with-none-on-the-right")


def test_tidying_undoes_what_chats_and_web_pages_do() -> None:
    plain = "unpickling 'a' < \"b\" failed"
    assert undo_formatting(html.escape(plain)) == plain
    assert undo_formatting("> unpickling ‘a’ <\n> “b” failed") == plain


def test_the_messages_are_made_once_and_a_damaged_cache_is_made_again(engine: Engine, tmp_path: Path) -> None:
    few = {name: entry for name, entry in engine.knowledge.entries.items() if entry.area == "ddp"}
    knowledge = replace(engine.knowledge, entries=few)
    mistyped = from_bytes(UNUSED.replace("iteration", "iteraton").replace("indicates", "indicats").encode())
    for damage in (None, b"no JSON"):
        verdict = Engine(knowledge, tmp_path).triage(mistyped).root_cause
        assert verdict is not None
        assert verdict.entry == "ddp.unfinished-reduction"
        (kept,) = tmp_path.glob("messages-*")
        assert len(json.loads(kept.read_bytes())) > 10
        kept.write_bytes(damage or b"")


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("RuntimeError: DataLoader worker (pid 3121) is killed by signal: Bus er", "dataloader.shm-bus-error"),
        ("size mismatch fo", "checkpoint.size-mismatch"),
        ("ut of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total cap", "cuda.oom"),
        ("RuntimeError: CUDA error: device-side assert trigg", "cuda.device-side-assert"),
    ],
)
def test_a_message_is_found_when_its_end_is_cut_off(
    engine: Engine, text: str, entry: str, decided: Callable[[], set[str]]
) -> None:
    root = triage(engine, text).root_cause
    assert root is not None
    assert root.entry == entry
    assert root.confidence == "likely"
    assert "near passages" in decided() or text.startswith("RuntimeError: ")


@pytest.mark.parametrize("text", ["RuntimeError: unknown error", "RuntimeError: size mismatch", "the size mism"])
def test_a_few_whole_words_are_not_piece_of_a_message(engine: Engine, text: str) -> None:
    root = triage(engine, text).root_cause
    assert root is None or not any(reason.name == "near" for reason in root.because)


def test_the_misspelt_name_of_an_exception_is_reported(engine: Engine) -> None:
    root = triage(engine, "torch.distributed.elastic.multiprocessiong.erroes.ChildFailedError:").root_cause
    assert root is not None
    assert root.entry == "elastic.child-failed"
    assert root.confidence != "certain"
    assert any(
        "“multiprocessiong … erroes” where the entry has “multiprocessing … errors”" in why for why in root.reasons
    )


@pytest.mark.parametrize(
    ("message", "entry"),
    [
        (
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 918233 go\nt signal: 1",
            "elastic.sighup",
        ),
        ("AssertionError: global batch size (10) must be\ndivisible by the world size (4)", "usage.config"),
    ],
    ids=["cut inside of a word", "shown by a broad sign"],
)
def test_a_raised_message_in_two_lines_is_found(engine: Engine, message: str, entry: str) -> None:
    root = triage(engine, "\n".join(traceback(message)) + "\n").root_cause
    assert root is not None
    assert root.entry == entry
    assert root.confidence != "certain"
