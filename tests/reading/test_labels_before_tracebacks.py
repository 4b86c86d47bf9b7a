"""Labels that no list knows, which stand before the lines of a traceback."""

import pytest

from tests.logs import traceback
from torchtriage.domain.line import Line, Position
from torchtriage.reading.lines import lines
from torchtriage.reading.prefixes.paths import FileOrigin

PLAIN = [f"step {step} loss 0.5" for step in range(40)]


def read(log: list[str]) -> list[Line]:
    kept = [(1, "\n".join(log).encode() + b"\n")]
    return [line for many in lines(kept, FileOrigin(None), Position(1, 0)) for line in many]


@pytest.mark.parametrize(
    ("label", "rank", "host"),
    [
        ("INFO - 3: ", 3, None),
        ("ERROR - [worker-3] ", 3, None),
        ("[loop] ERROR trainer_3: ", 3, None),
        ("[worker-3] ", None, "worker-3"),
        ("node-3: ", None, "node-3"),
        ("(node-3) ", None, "node-3"),
        ("node-3 stderr: ", None, "node-3"),
        ("10.0.0.3: ", None, "10.0.0.3"),
        ("<3> ", 3, None),
        ("w3| ", 3, None),
        ("shoe - leather: ", None, None),
    ],
)
def test_a_label_comes_off_where_a_traceback_is_after_it(label: str, rank: int | None, host: str | None) -> None:
    failed = traceback("KeyError: 'image'")
    result = read([*PLAIN, *(label + line for line in failed)])[len(PLAIN) :]
    assert [line.text for line in result] == failed
    assert {(line.rank, line.host) for line in result} == {(rank, host)}
    assert len({line.stream for line in result}) == 1


@pytest.mark.parametrize("others", [[], PLAIN])
def test_a_label_comes_off_a_traceback_that_lost_its_head(others: list[str]) -> None:
    failed = traceback("KeyError: 'image'")[1:]
    result = read([*others, *(f"worker-0: {line}" for line in failed)])[len(others) :]
    assert [line.text for line in result] == failed
    assert {line.host for line in result} == {"worker-0"}


def test_words_before_a_quoted_frame_are_not_label() -> None:
    quoted = ['it stops in   File "/job/a.py", line 3, in main', "it stops in 3 of 4 runs"]
    assert [line.text for line in read(quoted)] == quoted


def test_two_writers_lines_are_reported_apart() -> None:
    failed = traceback("KeyError: 'image'")
    result = read([*PLAIN, *(f"node-{node}: {line}" for line in failed for node in (3, 5))])[len(PLAIN) :]
    assert [line.text for line in result if line.host == "node-5"] == failed


@pytest.mark.parametrize("head", ["ERROR: it broke: ", "100%|####| 5/5 "])
def test_words_before_a_head_alone_are_not_label(head: str) -> None:
    first, *rest = traceback("KeyError: 'image'")
    result = read([*PLAIN, head + first, *rest, f"{head}again"])
    assert result[-1].text.endswith("again")
    assert result[-1].text == f"{head}again"


def test_hosts_before_a_few_of_the_lines_are_learned() -> None:
    result = read([line for step in PLAIN for line in (step, *(f"node-{at}: cache filled" for at in (1, 2)))][:80])
    assert {line.host for line in result} == {None, "node-1", "node-2"}


def test_layers_of_a_model_are_not_hosts() -> None:
    result = read([f"layer-{at % 4}: Linear(in_features={at})" for at in range(40)] + PLAIN)
    assert {line.host for line in result} == {None}


@pytest.mark.parametrize("first", [1, 107])
def test_numbers_that_count_lines_are_not_ranks(first: int) -> None:
    failed = traceback("KeyError: 'image'")
    result = read([f"{number}:{line}" for number, line in enumerate(failed, first)])
    assert [line.text for line in result] == failed
    assert {line.rank for line in result} == {None}


def test_numbers_that_rise_by_chance_are_ranks() -> None:
    result = read(["0: start", "1: start", "2: start", "3: KeyError: 'image'"])
    assert [line.rank for line in result] == [0, 1, 2, 3]
