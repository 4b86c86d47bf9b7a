"""The kit that makes hangs (tests/corpus/hangs): its random choices and labels; with torch, a small sample of real
hangs."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bench.hangs import judged
from tests.corpus.hangs.__main__ import Forks, NoHang, make
from tests.corpus.hangs.sampling import KINDS, Draw, draws

TORCH = Path(os.environ.get("TORCH_PYTHON", "/nonexistent"))  # a Python with torch, which the tests' own lacks
SAMPLE = ("skip", "other-group", "killed", "stopped", "lock", "slow-save", "extra", "gil")


def has_torch() -> bool:
    return (
        TORCH.exists()
        and not subprocess.run([TORCH, "-c", "import torch"], capture_output=True, check=False).returncode
    )


def test_a_seed_repeats_its_choices_and_uses_each_kind_before_any_repeats() -> None:
    once = draws(2 * len(KINDS), 5)
    assert once == draws(2 * len(KINDS), 5) != draws(2 * len(KINDS), 6)
    assert set(Counter(draw.kind for draw in once).values()) == {2}


@pytest.mark.parametrize(
    ("kind", "ranks", "at_fault", "dead", "evidence", "told"),
    [
        ("lock", 2, (0,), (), "dumps alone", True),
        ("skip", 2, (0,), (), "dumps alone", False),
        ("skip", 3, (0,), (), "dumps alone", True),
        ("skip", 3, (0,), (2,), "dumps alone", False),
        ("skip", 4, (0,), (0, 1), "dumps alone", False),
        ("skip", 4, (0,), (0,), "dumps alone", True),
        ("skip", 8, (0,), (), "faulthandler alone", False),
    ],
)
def test_a_label_says_whether_the_evidence_can_tell(
    kind: str, ranks: int, at_fault: tuple[int, ...], dead: tuple[int, ...], evidence: str, told: bool
) -> None:
    draw = Draw("000", kind, ranks, "flat", "fork", evidence, at_fault, 1, asynchronous=False, json=False)
    assert draw.told(dead) is told


@pytest.mark.slow
@pytest.mark.skipif(not has_torch(), reason="TORCH_PYTHON names no Python that has torch")
def test_real_hangs_are_explained(tmp_path: Path) -> None:
    forks = Forks(TORCH, tmp_path)
    try:
        for kind in SAMPLE:
            draw = next(one for one in draws(400, 3) if one.kind == kind and 4 <= one.ranks <= 8)
            try:
                make(replace(draw, launcher="fork", evidence="dumps alone"), TORCH, tmp_path / kind, forks)
            except NoHang as reason:
                pytest.fail(str(reason))
    finally:
        forks.end()
    found = list(judged([tmp_path]))
    assert len(found) == len(SAMPLE)
    assert [
        f"{case.name}: {sorted(case.named)} for {sorted(case.at_fault)}" for case in found if case.result == "wrong"
    ] == []
    assert sum(case.result == "exact" for case in found) >= len(SAMPLE) - 1
