"""Reports of NCCL's RAS service, as text and as JSON, through the whole engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.logs import steps
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.errors import UnreadableLog
from torchtriage.evidence.nccl_ras import MAX_BYTES
from torchtriage.reading.sources import from_bytes, open_path

HEAD = """\
NCCL version 2.27.7 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         {size}         {size}   RUNNING  {state}

Errors
======

"""
WARNINGS = "Warnings\n========\n\n"
MISSED = """\
INCOMPLETE
  Missing communicator data from 1 job process
  Process 4711 on node gpu-12 managing GPU 1

"""
OF_COMMUNICATOR = """\
#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  {told}

"""
COUNTS = """\
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllGather operation counts
  7 ranks have launched up to operation {most}
  Rank 6 has launched up to operation {few} -- GPU 2 managed by process 4712 on node gpu-12

"""


def text(*parts: str, size: int = 8, state: str = "OK") -> str:
    return HEAD.format(size=size, state=state) + "".join(parts)


def triage(engine: Engine, expected: str) -> Verdict:
    return engine.triage(from_bytes(expected.encode()))


def case_of(verdict: Verdict) -> str | None:
    return verdict.answer.case if verdict.answer else None


@pytest.mark.parametrize(
    "expected", ["The missing rank: 5", "Rank 5 -- GPU 1 managed by process 4711 on node gpu-12"], ids=["2.24", "2.27"]
)
def test_who_does_not_answer_is_named_with_gpu_process_and_host(engine: Engine, expected: str) -> None:
    verdict = triage(engine, text(MISSED, OF_COMMUNICATOR.format(told=expected), WARNINGS, state="INCOMPLETE"))
    assert verdict.root_cause is not None
    assert (verdict.outcome, verdict.root_cause.entry, case_of(verdict)) == (
        "explained",
        "hang.rank-missing",
        "ras-silent",
    )
    assert (verdict.root_cause.rank, verdict.root_cause.host, verdict.run.suspect_ranks) == (5, "gpu-12", (5,))
    assert verdict.answer is not None
    assert verdict.answer.says.startswith("Rank 5 (GPU 1, process 4711 on gpu-12) did not answer")
    assert verdict.run.world_size == 8
    assert [source.taken_for for source in verdict.run.sources] == ["NCCL RAS report"]


def test_a_process_that_is_considered_dead_is_called_so(engine: Engine) -> None:
    dead = "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
    dead += "  Process 4711 on node gpu-12 managing GPU 1\n\n"
    result = OF_COMMUNICATOR.format(told="The missing rank: 5")
    verdict = triage(engine, text(dead, result, WARNINGS, state="INCOMPLETE"))
    assert (case_of(verdict), verdict.run.suspect_ranks) == ("ras-dead", (5,))
    alone = triage(engine, text(dead, WARNINGS))
    assert (case_of(alone), alone.run.suspect_ranks) == ("ras-dead", ())
    assert alone.answer is not None
    assert "Process 4711 on gpu-12 (GPU 1)" in alone.answer.says


def test_a_rank_of_a_smaller_communicator_is_not_a_rank_of_the_run(engine: Engine) -> None:
    result = OF_COMMUNICATOR.format(told="Rank 1 -- GPU 1 managed by process 4711 on node gpu-12")
    verdict = triage(engine, text(result, WARNINGS, size=4, state="INCOMPLETE"))
    assert verdict.root_cause is not None
    assert (verdict.root_cause.rank, verdict.run.suspect_ranks, case_of(verdict)) == (None, (), "ras-silent")


@pytest.mark.parametrize(
    ("reports", "case"),
    [
        ([(90, 88)], "ras-behind"),
        ([(90, 88), (90, 88)], "ras-stuck"),
        ([(90, 88), (95, 94)], "ras-behind"),
        ([(88, 90)], "ras-ahead"),
    ],
    ids=["one report", "nothing moves", "it moves", "ahead"],
)
def test_counts_show_who_is_behind_and_two_reports_whether_it_hangs(
    engine: Engine, reports: list[tuple[int, int]], case: str
) -> None:
    lines = [text(WARNINGS, COUNTS.format(most=most, few=few), state="MISMATCH") for most, few in reports]
    verdict = triage(engine, "".join(lines))
    assert case_of(verdict) == case
    assert verdict.run.suspect_ranks == (() if case == "ras-ahead" else (6,))
    assert verdict.root_cause is not None
    assert verdict.root_cause.evidence[0].text.strip().startswith("Rank 6 has launched")


def test_an_error_of_a_rank_and_a_status_of_its_own_are_reported(engine: Engine) -> None:
    error = "#0-0 (27a079b828ff1a75) ERROR\n  Asynchronous error on 1 rank\n"
    error += "  Rank 3 reported Remote process error -- GPU 3 managed by process 80 on node gpu-11\n\n"
    verdict = triage(engine, text(error, WARNINGS, state="ERROR"))
    assert (case_of(verdict), verdict.run.suspect_ranks) == ("ras-error", (3,))
    status = "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different status\n"
    status += (
        "  7 ranks have status FINALIZE\n  Rank 3 has status RUNNING -- GPU 3 managed by process 80 on node gpu-11\n"
    )
    verdict = triage(engine, text(WARNINGS, status, state="MISMATCH"))
    assert (case_of(verdict), verdict.run.suspect_ranks) == ("ras-status", (3,))


def test_a_report_without_a_fault_is_no_proof_of_a_healthy_run(engine: Engine) -> None:
    verdict = triage(engine, text(WARNINGS))
    assert verdict.outcome == "inconclusive"
    assert verdict.answer is not None
    assert "no rank that is behind" in verdict.answer.says
    assert verdict.answer.values["missing"] == "nobody-waits"


def rank(number: int, count: int, **status: Any) -> dict[str, Any]:
    usual = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    return {
        "rank": number, "host": "10.0.0.7", "pid": 900 + number, "cuda_dev": number, "nvml_dev": number,
        "status": usual | status, "collective_counts": {"Broadcast": 1, "AllReduce": count},
    }  # fmt: skip


def as_json(ranks: list[dict[str, Any]], missing: list[dict[str, Any]], size: int) -> str:
    one = {"hash": "0xa1349768e9517ed7", "size": size, "ranks": ranks, "missing_ranks": missing}
    return json.dumps({"nccl_version": "2.28.9", "communicators_count": 1, "communicators": [one]}, indent=2)


@pytest.mark.parametrize(
    ("expected", "case", "suspects"),
    [
        (as_json([rank(0, 9), rank(1, 9), rank(2, 4)], [], 3), "ras-behind", (2,)),
        (as_json([rank(0, 9), rank(1, 9), rank(2, 9, async_error=6)], [], 3), "ras-error", (2,)),
        (as_json([rank(0, 9), rank(1, 9), rank(2, 9, abort_flag=True)], [], 3), "ras-status", (2,)),
        (as_json([rank(0, 9)], [rank(1, 0) | {"status": {"considered_dead": True}}], 2), "ras-dead", (1,)),
        # as NCCL 2.28 writes it, which is no JSON
        (
            as_json([rank(0, 9)], [rank(1, 0) | {"status": {"unresponsive": True}}], 2).replace(
                '"nvml_dev": 1,', '"nvml_dev": 1'
            ),
            "ras-silent",
            (1,),
        ),
    ],
)
def test_json_says_the_same(engine: Engine, expected: str, case: str, suspects: tuple[int, ...]) -> None:
    verdict = triage(engine, expected)
    assert (case_of(verdict), verdict.run.suspect_ranks) == (case, suspects)


def test_a_log_below_a_report_is_read_too(engine: Engine) -> None:
    log = [*steps([0]), "Traceback (most recent call last):", '  File "/job/train.py", line 9, in <module>']
    log += ["    scores['loss']", "KeyError: 'loss'"]
    verdict = triage(engine, "\n".join([text(WARNINGS), *log]))
    assert verdict.root_cause is not None
    assert verdict.root_cause.exception is not None
    assert verdict.root_cause.exception.type == "KeyError"


def test_a_report_next_to_a_log_names_who_the_log_waited_for(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "\n".join([*steps([0]), "[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=600000) ran for 600411 "
        "milliseconds before timing out."])
    )  # fmt: skip
    (tmp_path / "ras.txt").write_text(text(MISSED, OF_COMMUNICATOR.format(told="The missing rank: 5"), WARNINGS))
    verdict = engine.triage(open_path(tmp_path))
    assert (case_of(verdict), verdict.run.suspect_ranks) == ("ras-silent", (5,))


@pytest.mark.parametrize(
    "expected",
    [
        '{"nccl_version": "2.28.9", "communicators": 7}',
        '{"nccl_version": "2.28.9", "communicators": [{"ranks": [{"rank": "x", "status": 3}], "missing_ranks": {}}]}',
        text(OF_COMMUNICATOR.format(told="The missing ranks: 0-99999999")),
    ],
    ids=["a number", "wrong types", "many ranks"],
)
def test_hostile_reports_cost_nothing(engine: Engine, expected: str) -> None:
    assert triage(engine, expected).outcome in ("inconclusive", "unexplained")


def test_a_report_that_is_cut_off_or_too_deep_is_refused_with_the_reason(engine: Engine) -> None:
    with pytest.raises(UnreadableLog, match="incomplete JSON"):
        triage(engine, '{"nccl_version": "2.28.9", "communicators": [' + "[" * 200_000)


def test_a_report_that_is_too_large_is_left_out_with_the_reason(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "ras.txt").write_text(text(WARNINGS) + " \n" * MAX_BYTES)
    (tmp_path / "train.log").write_text("\n".join(steps([0])))
    notes = [source.note for source in engine.triage(open_path(tmp_path)).run.sources if source.note]
    assert notes == ["NCCL RAS report: larger than 32 MB"]
