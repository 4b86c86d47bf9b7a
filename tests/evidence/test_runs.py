"""Folders and archives of dumps, stacks and logs, through the whole engine."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from pathlib import Path

import pytest

from tests.evidence.simulated import simulated
from tests.logs import steps, traceback
from torchtriage.cli.verdict_report import report
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.errors import UnreadableLog
from torchtriage.reading.sources import open_path

REAL = Path(__file__).parent / "real_slow_save"  # three ranks with Gloo, torch 2.13; rank 2 saves while the others wait
WATCHDOG = (
    "[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, "
    "OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=600000) ran for 600411 milliseconds before timing out."
)


def write_dumps(folder: Path, fault: str = "stalls", seed: int = 3) -> tuple[int, list[int]]:
    """Writes the dumps of a run -> the rank at fault, and all."""
    run = simulated(seed, fault)
    for rank, data in run.dumps.items():
        (folder / f"nccl_trace_rank_{rank}").write_bytes(data)
    return run.at_fault, list(range(run.world_size))


def triaged(engine: Engine, folder: Path) -> Verdict:
    return engine.triage(open_path(folder))


def test_a_folder_of_dumps_alone_names_the_rank(engine: Engine, tmp_path: Path) -> None:
    bad, ranks = write_dumps(tmp_path)
    verdict = triaged(engine, tmp_path)
    assert verdict.root_cause is not None
    assert (verdict.outcome, verdict.root_cause.entry, verdict.root_cause.rank) == (
        "explained",
        "hang.rank-missing",
        bad,
    )
    assert (verdict.run.suspect_ranks, verdict.run.world_size) == ((bad,), len(ranks))
    assert {(source.taken_for, source.rank) for source in verdict.run.sources} == {
        ("flight recorder", rank) for rank in ranks
    }
    assert verdict.answer is not None
    assert f"Rank {bad} never entered" in verdict.answer.says
    shown = verdict.root_cause.evidence[0]
    assert shown.file is not None
    assert "collective_seq_id" in json.loads(shown.text)


def test_an_archive_of_dumps_is_read_as_the_folder_is(engine: Engine, tmp_path: Path) -> None:
    bad, _ = write_dumps(tmp_path)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.add(tmp_path, "dumps")
    path = tmp_path / "dumps.tar.gz"
    path.write_bytes(archive.getvalue())
    assert engine.triage(open_path(path)).run.suspect_ranks == (bad,)


def test_a_stack_says_what_the_missing_rank_did(engine: Engine) -> None:
    verdict = triaged(engine, REAL)
    assert verdict.run.suspect_ranks == (2,)
    assert verdict.answer is not None
    assert (verdict.answer.case, "save_checkpoint (job.py:" in verdict.answer.says) == ("missing-and-stack", True)


def test_stacks_alone_name_the_few_that_are_elsewhere(engine: Engine, tmp_path: Path) -> None:
    for stack in REAL.glob("stack_*"):
        (tmp_path / stack.name).write_bytes(stack.read_bytes())
    verdict = triaged(engine, tmp_path)
    assert verdict.run.suspect_ranks == (2,)
    assert verdict.answer is not None
    assert verdict.answer.case == "elsewhere"


def test_the_time_out_of_a_log_follows_from_the_missing_rank(engine: Engine, tmp_path: Path) -> None:
    bad, _ = write_dumps(tmp_path)
    (tmp_path / "train.log").write_text("\n".join([*steps([0]), WATCHDOG]) + "\n")
    verdict = triaged(engine, tmp_path)
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.run.suspect_ranks) == ("hang.rank-missing", (bad,))
    assert ("nccl.timeout", "hang.rank-missing") in {(each.entry, each.because_of) for each in verdict.cascades}


@pytest.mark.parametrize("agrees", [True, False])
def test_an_error_in_the_log_stays_the_cause_and_the_dumps_bear_witness(
    engine: Engine, tmp_path: Path, agrees: bool
) -> None:
    bad, ranks = write_dumps(tmp_path)
    rank = bad if agrees else next(each for each in ranks if each != bad)
    raised = traceback(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", prefix=f"[rank{rank}]: "
    )
    (tmp_path / "train.log").write_text("\n".join([*steps([0]), *raised]) + "\n")
    verdict = triaged(engine, tmp_path)
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.run.suspect_ranks) == ("cuda.oom", (rank,))
    [witness] = [reason.name for reason in verdict.root_cause.because if reason.name.startswith("dumps")]
    assert witness == ("dumps_agree" if agrees else "dumps_differ")


def test_a_file_that_is_left_out_is_listed_with_the_reason(engine: Engine, tmp_path: Path) -> None:
    bad, _ = write_dumps(tmp_path)
    (tmp_path / "nccl_trace_rank_99").write_bytes(
        b"\x80\x02X\x07\0\0\0entriesX\x09\0\0\0pg_configX\x06\0\0\0seq_idcos\nsystem\n."
    )
    (tmp_path / "weights.bin").write_bytes(bytes(1000))
    (tmp_path / "nccl_trace_rank_98").write_bytes(pickle.dumps({"a": 1.5}))
    verdict = triaged(engine, tmp_path)
    left = {source.file: source.note for source in verdict.run.sources if source.taken_for == "unread"}
    assert set(left) == {"nccl_trace_rank_99", "weights.bin", "nccl_trace_rank_98"}
    assert left["nccl_trace_rank_98"] == "a pickle, but no dump of the flight recorder"
    assert "more than plain values" in str(left["nccl_trace_rank_99"])
    assert verdict.run.suspect_ranks == (bad,)
    assert any("nccl_trace_rank_99" in warning for warning in verdict.warnings)
    page = report(verdict, "en", colour=False, whole=True)
    assert "weights.bin: not recognised as a log or as other evidence" in page


def test_a_folder_with_nothing_but_a_broken_dump_is_refused(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "_dump_0").write_bytes(b"\x80\x02X\x07\0\0\0entriesX\x09\0\0\0pg_configX\x06\0\0\0seq_idcos\nsystem\n.")
    with pytest.raises(UnreadableLog, match="more than plain values"):
        triaged(engine, tmp_path)


def test_dumps_in_which_no_one_waits_name_no_one(engine: Engine, tmp_path: Path) -> None:
    for path in REAL.glob("dump_*"):
        dump = json.loads(path.read_text())
        dump["entries"] = [entry | {"retired": True} for entry in dump["entries"]]
        (tmp_path / path.name).write_text(json.dumps(dump))
    verdict = triaged(engine, tmp_path)
    assert (verdict.outcome, verdict.run.suspect_ranks) == ("inconclusive", ())
    assert verdict.answer is not None
    assert "no rank that is behind" in verdict.answer.says


@pytest.mark.parametrize(
    ("says", "lost", "suspects"),
    [
        ("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:23967", 2, (2, 3)),
        ("  what():  [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 172 vs 20. Received data size doesn't match expected size.", 1, (2,)),
        ("  what():  [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 172 vs 20. Received data size doesn't match expected size.", 2, ()),
    ],
)  # fmt: skip
def test_a_rank_without_a_dump_is_the_lost_peer_where_no_other_waits(
    engine: Engine, tmp_path: Path, says: str, lost: int, suspects: tuple[int, ...]
) -> None:
    """Gloo raises on all ranks whose peer is gone, so that none waits. Which of several aborted for another's mistake
    nothing tells."""
    dump = json.loads((REAL / "dump_0.json").read_text())
    dump["entries"] = [entry | {"retired": True} for entry in dump["entries"] if entry["process_group"][0] == "0"]
    for rank in [0, 1, 3][: 4 - lost]:
        (tmp_path / f"dump_{rank}.json").write_text(json.dumps(dump | {"pg_config": {}}))
    (tmp_path / "train.log").write_text("\n".join(["world_size=4", *steps([0]), says]) + "\n")
    assert triaged(engine, tmp_path).run.suspect_ranks == suspects
