"""What single lines of genuine logs tell: value, unit, line, rank, and which line counts where several tell it."""

from pathlib import Path

import pytest

from torchtriage.domain.fact import Fact
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes, open_path

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
LOOP = "[rank {rank}]: step {step}/900 | loss {loss} | lr 3.0e-04 | grad norm 0.8 | epoch 2\n"
RAISED = (
    '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/job/train.py", line 44, in <module>\n'
    "[rank1]:     main()\n[rank1]: ValueError: no such split\n"
)


def facts(engine: Engine, *parts: str) -> dict[str, Fact]:
    return {fact.name: fact for fact in engine.triage(from_bytes("".join(parts).encode())).facts}


def of_corpus(engine: Engine, name: str) -> dict[str, Fact]:
    folder = CORPUS / name
    log = folder / "log" if (folder / "log").is_dir() else folder / "log.txt"
    return {fact.name: fact for fact in engine.triage(open_path(log)).facts}


@pytest.mark.parametrize(
    ("log", "name", "value", "unit", "line", "rank"),
    [
        ("kill9_tee", "exit_detail", "Signal 9 (SIGKILL) received by PID 20593", None, 57, 2),
        ("kill9_tee", "binary", "/opt/venv/bin/python3", None, 13, None),
        ("attribute_rank2", "pid", 16268, None, 100, 2),
        ("attribute_rank2", "last_loss", "2.2729", None, 8, None),
        ("attribute_rank2", "total_steps", 8, None, 8, None),
        ("attribute_rank2", "omp_num_threads", 1, None, 3, None),
        ("attribute_rank2", "peer_port", 49823, None, 34, 1),
        ("bus_shell", "signal", "SIGBUS", None, 8, None),
        ("barrier_forgotten", "timeout_ms", 6000, "ms", 17, 1),
        ("stuck_rank_tee", "collective", "recv", None, 27, 0),
        ("bugs_in_two_ranks", "master_port", 56961, None, 3, None),
        ("lightning_unused", "backend", "gloo", None, 7, None),
        ("metrics_no_space", "errno", 28, None, 16, 0),
        ("hf_no_loss", "progress", "0/4", None, 1, None),
        ("last_batch_srun", "last_loss", "2.3132", None, 6, 0),
    ],
)
def test_lines_of_genuine_logs(
    engine: Engine, log: str, name: str, value: str | int, unit: str | None, line: int, rank: int | None
) -> None:
    fact = of_corpus(engine, log)[name]
    assert (fact.value, fact.unit, fact.line) == (value, unit, line)
    assert rank is None or fact.rank == rank


def test_of_the_moment_the_same_ranks_newest_line_above_the_failure_counts(engine: Engine) -> None:
    above = [LOOP.format(rank=rank, step=step, loss=f"{rank}.{step}") for step in (7, 8) for rank in (1, 0)]
    found = facts(engine, *above, RAISED, LOOP.format(rank=1, step=9, loss="9.9"))
    assert (found["last_loss"].value, found["last_loss"].line, found["last_loss"].rank) == ("1.8", 3, 1)
    assert (found["total_steps"].value, found["epoch"].value, found["learning_rate"].value) == (900, 2, "3.0e-04")


def test_in_a_long_log_the_lines_close_above_say_more_than_old_ones_of_the_same_rank(engine: Engine) -> None:
    above = [LOOP.format(rank=rank, step=step, loss=f"{rank}.{step}") for step in range(900) for rank in (1, 0, 2, 3)]
    above += [
        LOOP.format(rank=rank, step=step, loss=f"{rank}.{step}") for step in range(900, 1100) for rank in (0, 2, 3)
    ]
    found = facts(engine, "world_size: 4, num_workers: 6, batch_size=32\n", *above, RAISED)
    assert (found["last_loss"].value, found["last_loss"].rank) == ("3.1099", 3)
    assert [found[name].value for name in ("num_workers", "batch_size")] == [6, 32]
    assert found["num_workers"].line == 1


def test_what_is_reported_of_a_process_is_not_said_of_another(engine: Engine) -> None:
    report = "exitcode: 1) local_rank: {rank} (pid: {pid}) of binary: /usr/bin/python3\n"
    agent = "E0501 09:20:00.000000 7 torch/distributed/elastic/multiprocessing/api.py:1] failed ("
    assert "pid" not in facts(engine, RAISED, agent, report.format(rank=0, pid=50))


def test_a_line_of_code_in_a_traceback_sets_nothing(engine: Engine) -> None:
    found = facts(engine, RAISED.replace("main()", "main(batch_size=64, num_workers=3)"))
    assert not {"batch_size", "num_workers"} & found.keys()


def test_what_is_below_the_failure_counts_for_the_job_and_not_for_the_moment(engine: Engine) -> None:
    end = "slurmstepd: error: *** JOB 4711 ON gpu-07 CANCELLED AT 2026-05-01T09:50:34 DUE TO TIME LIMIT ***\n"
    found = facts(engine, "step 3 loss 0.5\n", end, "step 4 loss 0.25\n")
    assert [found[name].value for name in ("job_id", "node", "job_reason")] == [4711, "gpu-07", "TIME LIMIT"]
    assert found["last_loss"].value == "0.5"


def test_a_secret_next_to_a_value_stays_out_of_it(engine: Engine) -> None:
    line = "config: batch_size=8 MASTER_ADDR=10.0.0.7 password=hunter2secret dataset: hub/set_1\n"
    found = facts(engine, line, RAISED)
    assert found["batch_size"].value == 8
    assert not any("hunter2" in str(fact.value) for fact in found.values())


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("elapsed time per iteration (ms): 6703.7 | loss 0.5", "6.704"),
        (" 3%|▎         | 30/1000 [00:12<06:28,  2.50it/s]", "0.4"),
        (" 3%|▎         | 30/1000 [00:12<06:28,  2.62s/it]", "2.62"),
    ],
)
def test_steps_a_second_and_milliseconds_are_seconds_a_step(engine: Engine, line: str, seconds: str) -> None:
    found = facts(engine, "step 1 loss 2.0\n", f"{line}\n", RAISED)["seconds_per_step"]
    assert (found.value, found.unit, found.text) == (seconds, "s", f"{seconds} s")
