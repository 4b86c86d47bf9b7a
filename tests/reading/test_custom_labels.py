"""Labels learned from how lines look."""

import re

import pytest

from tests.logs import BANNER, agent, steps, traceback
from torchtriage.reading.prefixes.custom_labels import custom_label
from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.strip import learn_labels, strip_prefixes

PASSED_ON = [BANNER, *steps(range(2), count=4), *traceback("KeyError: 'image'", prefix="[rank0]: "), agent(1)]


@pytest.mark.parametrize(
    "label",
    [
        "09:00:{:02} ",
        "[09:00:{:02}] ",
        "01/May/2026:09:00:{:02} ",
        "26/05/01 09:00:{:02} INFO Runner: ",
        "[09:00:{:02}]W:\t [Step 1/2] ",
        "09:00:{:02}.5 | INFO    | Task run 'train-0' - ",
        "[run 7 (pid {})] ",
        "shoe - leather: ",
        "| {} | ",
    ],
)
def test_what_is_before_lines_of_others_is_a_label(label: str) -> None:
    lines = [label.format(at) + line for at, line in enumerate(PASSED_ON)]
    found = custom_label(lines)
    assert found is not None
    assert [re.sub(f"^(?:{found})", "", line) for line in lines] == PASSED_ON


@pytest.mark.parametrize(
    "lines",
    [
        PASSED_ON,
        [f"step {at} loss 0.5" for at in range(40)],
        [f"[rank {at % 2}] epoch 3 step {at} loss 0.5" for at in range(40)],
        [f"2026-05-01 09:00:{at:02},123 - trainer - INFO - step {at} loss 0.5" for at in range(40)],
        [f"09:00:{at:02} epoch 3 loss 0.5" for at in range(40)],
        traceback("KeyError: 'image'", prefix="[rank0]: "),
        [BANNER] * 12,
    ],
)
def test_a_programs_own_words_are_not(lines: list[str]) -> None:
    assert custom_label(lines) is None


def test_a_label_ends_before_the_rank() -> None:
    lines = [f"09:00:{at:02} [rank0]: {line}" for at, line in enumerate([*traceback("KeyError: 'image'"), *"abcdefgh"])]
    found = custom_label(lines)
    assert found is not None
    assert re.sub(found, "", lines[0]) == "[rank0]: Traceback (most recent call last):"


def test_a_label_that_can_be_empty_is_taken_once() -> None:
    known = Labels(custom=re.compile(r"(?:\ |\s*$)"))
    assert strip_prefixes(" step 1", known).text == "step 1"
    assert strip_prefixes("", known).text == ""


def test_a_number_that_counts_names_no_writer() -> None:
    lines = [f"INFO[{at:04}] [rank{at % 3}]: step {at}" for at in range(30)]
    found = custom_label(lines)
    assert found is not None
    counted = re.fullmatch(found, "INFO[0012] ")
    assert counted is not None
    assert counted.groupdict() == {"count0": "0012"}
    known = learn_labels(lines)
    assert {strip_prefixes(line, known).stream for line in lines} == {f"INFO[]/{rank}/" for rank in range(3)}


def test_a_record_after_a_label_is_not_a_part_of_it() -> None:
    lines = [f'12:00:{at:02} | train - {{"message": "step {at}", "level": "info"}}' for at in range(20)]
    assert {strip_prefixes(line, learn_labels(lines)).text[:11] for line in lines} == {'{"message":'}
