from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.evidence.simulated import FAULTS, Simulated, simulated
from torchtriage.causality.hang_evidence import hang_text
from torchtriage.domain.evidence import Hang, RankDump
from torchtriage.engine import Engine
from torchtriage.evidence.collective_vocabulary import CollectiveVocabulary
from torchtriage.evidence.flight_recorder import read_dump
from torchtriage.evidence.wait_for import hang_of
from torchtriage.reading.pickled_dumps import as_text

RUNS = (8, pytest.param(25, marks=pytest.mark.slow))  # of each fault
SURE = ("stalls", "dies", "gpu-error")  # faults that every dump shows
# Where as many ranks call one thing as another, nothing tells who is right; a GPU that stands still may not show.
SHARE = {"skips": 0.6, "calls-other": 0.6, "other-shape": 0.6, "extra-call": 0.6, "gpu-stalls": 0.28}


@pytest.fixture(scope="module")
def words(engine: Engine) -> CollectiveVocabulary:
    return CollectiveVocabulary(engine.knowledge.vocabulary)


def read(run: Simulated) -> dict[int, RankDump]:
    texts = {rank: b"".join(as_text(iter((data,)))) for rank, data in run.dumps.items()}
    return {rank: read_dump(text, f"dump_{rank}", rank + 1, rank) for rank, text in texts.items()}


def explained(run: Simulated, words: CollectiveVocabulary) -> Hang:
    hang = hang_of(read(run), words)
    assert hang is not None
    return hang


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_rank_at_fault_is_named_and_never_one_that_waited(
    fault: str, runs: int, words: CollectiveVocabulary
) -> None:
    result: Counter[bool] = Counter()
    for seed in range(runs):
        run = simulated(seed, fault)
        suspects = explained(run, words).suspects
        assert suspects in ((), (run.at_fault,)), f"seed {seed}: {suspects} in place of {run.at_fault}"
        result[bool(suspects)] += 1
    assert result[True] >= int(runs * SHARE.get(fault, 0.96))


def test_a_dump_shows_its_rank_by_its_groups(words: CollectiveVocabulary) -> None:
    run = next(run for seed in range(50) if (run := simulated(seed, "stalls")).world_size == 16)
    texts = {rank: b"".join(as_text(iter((data,)))) for rank, data in run.dumps.items()}
    assert [read_dump(text, None, 1, None).rank for text in texts.values()] == list(texts)


def test_most_dumps_missing_names_no_one(words: CollectiveVocabulary) -> None:
    run = next(run for seed in range(50) if (run := simulated(seed, "stalls")).world_size == 16)
    dumps = {rank: dump for rank, dump in read(run).items() if rank != run.at_fault and rank % 4 == 0}
    hang = hang_of(dumps, words)
    assert hang is None or not set(hang.suspects) - {run.at_fault}


@pytest.mark.parametrize("runs", RUNS)
def test_where_all_wait_together_no_one_is_blamed(runs: int, words: CollectiveVocabulary) -> None:
    hangs = [explained(simulated(seed, "gpu-stalls"), words) for seed in range(runs)]
    assert {hang.kind for hang in hangs} == {"not-begun", "together"}
    assert all(not hang.suspects for hang in hangs if hang.kind == "together")


def test_a_call_that_gloo_gave_up_is_not_taken_for_one_that_ended(words: CollectiveVocabulary) -> None:
    """Gloo raises on some ranks where the types differ, and retires their call; one rank waits on."""

    def dump(rank: int, dtype: str, retired: bool) -> RankDump:
        entry = {"process_group": ["0", "default_pg"], "collective_seq_id": 5, "profiling_name": "gloo:all_reduce",
                 "input_sizes": [[4]], "input_dtypes": [dtype], "state": "scheduled", "retired": retired}  # fmt: skip
        return read_dump(json.dumps({"pg_config": {}, "entries": [entry]}).encode(), f"dump_{rank}", rank + 1, rank)

    dumps = {
        0: dump(0, "Float", True),
        1: dump(1, "Double", True),
        2: dump(2, "Float", True),
        3: dump(3, "Float", False),
    }
    hang = hang_of(dumps, words)
    assert hang is not None
    assert (hang.kind, hang.suspects) == ("other-call", (1,))


def test_both_sides_of_a_mismatch_are_named_with_their_place_in_the_code(words: CollectiveVocabulary) -> None:
    def dump(rank: int) -> RankDump:
        operation, line = ("broadcast", 61) if rank == 2 else ("all_reduce", 70)
        entry = {"process_group": ["0", "default_pg"], "collective_seq_id": 12, "profiling_name": f"nccl:{operation}",
                 "input_sizes": [[16]], "input_dtypes": ["Float"], "state": "scheduled", "retired": False,
                 "frames": [{"name": "main", "filename": "/job/train.py", "line": line}]}  # fmt: skip
        return read_dump(json.dumps({"pg_config": {}, "entries": [entry]}).encode(), f"dump_{rank}", rank + 1, rank)

    hang = hang_of({rank: dump(rank) for rank in range(4)}, words)
    assert hang is not None
    text = hang_text(hang)
    assert "called broadcast [16] Float at train.py:61, others all_reduce [16] Float at train.py:70" in text, text
