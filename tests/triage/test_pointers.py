"""What is looked for before a sign's regex is tried: it must never hide a match."""

import pytest
import re2

from app.knowledge import BUILT_IN
from app.knowledge.loader import load
from app.triage.patterns import Patterns, source
from app.triage.pointers import demands, meets, pointer


@pytest.mark.parametrize(
    ("pattern", "demanded"),
    [
        (r"NCCL WARN[^\n]{0,80}HIP failure", [["hip failure"], ["nccl warn"]]),
        (r"(torchrun|deepspeed)[^\n]* returned", [[" returned"], ["torchrun", "deepspeed"]]),
        (r"CUDA( driver)? error", [[" error"], ["cuda"]]),
        (r"[0-9]+|\w", []),
    ],
)
def test_a_pattern_demands_its_literals(pattern: str, demanded: list[list[str]]) -> None:
    assert demands(pattern) == demanded


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"(?i)\b(job|it)\b[^\n]{0,60}( hung| froze| got (stuck|lost))\b", "(?i) hung| froze| got stuck| got lost"),
        (r"step (\d+|none) (failed|was (cut|lost))", " failed| was cut| was lost"),
        (r"(CUDA|HIP|oneCCL) error: out of memory", " error: out of memory"),
        (r"Segmentation fault|Bus error", "Segmentation fault|Bus error"),
    ],
)
def test_a_pointer_takes_what_stands_before_alternatives_and_the_fewest_rare_literals(
    pattern: str, literals: str
) -> None:
    assert pointer(pattern) == literals


def test_one_of_several_literals_is_enough_and_letters_may_be_large() -> None:
    demanded = demands(r"(?i)(torchrun|deepspeed)[^\n]* returned")

    assert meets("DeepSpeed has RETURNED".lower(), demanded)
    assert not meets("deepspeed goes on", demanded)
    assert not meets("accelerate returned", demanded)


def test_what_shows_a_sign_holds_what_the_sign_demands() -> None:
    knowledge = load([BUILT_IN])
    shown = 0
    for pattern in Patterns(knowledge).all:
        sign = re2.compile(f"(?m){source(pattern.sign)}")
        for example in pattern.entry.match_examples:
            if sign.search(example):
                shown += 1
                assert meets(example.lower(), demands(source(pattern.sign))), source(pattern.sign)
    assert shown > len(knowledge.entries)
