from pathlib import Path

import pytest

from torchtriage.engine import Engine
from torchtriage.errors import BadInput
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.checks import problems
from torchtriage.knowledge.loader import load
from torchtriage.knowledge.new_entry import constant_part, draft, failure, path_of
from torchtriage.reading.sources import from_bytes

UNKNOWN = "quantum.FluxError: the flux of shard 17 left its tube in '/data/run 4' after 0x3f ticks"


@pytest.mark.parametrize(
    "name", ["", "cuda", "Cuda.oom", "cuda/oom", "../x.y", "a.b.", "a..b", "a.b\n", "cuda.o m", ".a"]
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="no name for an entry"):
        path_of(name, [BUILT_IN])


def test_an_existing_entry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cuda\.oom exists already"):
        path_of("cuda.oom", [BUILT_IN, tmp_path])


def test_a_new_entry_goes_to_the_last_folder(tmp_path: Path) -> None:
    assert path_of("env.torch-2.14", [BUILT_IN, tmp_path]) == tmp_path / "env" / "torch-2.14.yaml"


@pytest.mark.parametrize(
    "message",
    [None, UNKNOWN, "E: \"quotes\" and 'more': #{x} [y] \\ %", "Error: 显存 \u2028 \x07", "K", "a: b\nc: d\n\ttab"],
)
def test_a_draft_is_an_entry_that_says_what_is_left(message: str | None, tmp_path: Path) -> None:
    path = path_of("new.entry", [tmp_path])
    path.parent.mkdir()
    path.write_text(draft("new.entry", message), encoding="utf-8")
    knowledge = load([tmp_path])
    if message:
        assert knowledge.entries["new.entry"].match_examples == (message,)
    left = problems(knowledge, [tmp_path])
    assert sum("left to do" in problem for problem in left) == 7
    assert all(problem.startswith("new/entry.yaml:") for problem in left)


def test_numbers_paths_and_quoted_names_are_left_out_of_the_sign() -> None:
    assert constant_part(UNKNOWN) == "quantum.FluxError: the flux of shard"
    assert constant_part("KeyError: 'x'") == "KeyError: 'x'"


def test_the_failure_of_a_log_is_its_exception_or_its_evidence() -> None:
    engine = Engine(load([BUILT_IN]))
    log = f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    run()\n{UNKNOWN}\n'
    assert failure(engine.triage(from_bytes(log.encode()))) == UNKNOWN
    with pytest.raises(BadInput, match="nothing failed"):
        failure(engine.triage(from_bytes(b"epoch 1 step 100 loss 2.3\nepoch 1 step 200 loss 2.1\n")))
