"""The bench of confidence: what it counts as right, and its table."""

from __future__ import annotations

import json
from pathlib import Path

from bench.calibration import Judged, Labelled, judged, labelled, table
from torchtriage.engine import Engine
from torchtriage.reading.sources import open_path


def a_case(folder: Path, name: str, log: str, cause: str, *also: str) -> None:
    (folder / name).mkdir()
    (folder / name / "log.txt").write_text(log)
    (folder / name / "case.json").write_text(json.dumps({"root_cause": cause, "also_ok": also}))


def test_a_verdict_is_right_where_it_names_an_accepted_entry(engine: Engine, tmp_path: Path) -> None:
    oom = "step 1 loss 0.5\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    a_case(tmp_path, "right", oom, "cuda.oom")
    a_case(tmp_path, "also", oom, "cuda.cudnn", "cuda.oom")
    a_case(tmp_path, "wrong", oom, "nccl.timeout")
    verdicts = {case.name: judged(case, engine.triage(open_path(case.log))) for case in labelled([tmp_path])}
    assert {name: one.right for name, one in verdicts.items()} == {"also": True, "right": True, "wrong": False}
    assert {one.entry for one in verdicts.values()} == {"cuda.oom"}


def test_naming_nothing_is_right_where_the_entry_is_hidden(engine: Engine, tmp_path: Path) -> None:
    a_case(tmp_path, "strange", "step 1 loss 0.5\nWobbleError: the flange is loose\n", "nccl.ib")
    (case,) = labelled([tmp_path])
    verdict = engine.triage(open_path(case.log))
    assert (judged(case, verdict).right, judged(case, verdict, hidden=True).right) == (False, True)


def test_the_table_has_a_share_for_each_confidence() -> None:
    case = Labelled("a", Path(), "cuda.oom", frozenset({"cuda.oom"}))
    verdicts = [Judged(case, "cuda.oom", "certain", True)] * 3 + [Judged(case, "x.y", "certain", False)]
    assert "| certain | 4 | 3 | 0.750 |" in table(verdicts).splitlines()
    assert "| likely | 0 | 0 | |" in table(verdicts).splitlines()
