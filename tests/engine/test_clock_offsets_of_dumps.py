"""How far the clocks of hosts are apart, by the collectives in the flight recorder's dumps of their ranks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.test_clock_offsets import raised, trained
from tests.logs import text
from torchtriage.domain.verdict import ClockOffset, Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import open_path

BEGIN_NS = 1_777_626_000 * 10**9  # 2026-05-01 09:00:00 UTC
CALLS = 60
EVERY = 4.0  # seconds
HOSTS = {"gpu-1": (0, 1), "gpu-2": (2, 3)}
NONE: dict[int, float] = {}


def dump(
    rank: int,
    skew: float,
    ended: int = CALLS,
    late: Callable[[int], float] = lambda call: 0.0,
    backend: str = "nccl",
    pending: int = 1,
) -> str:
    """Returns the dump of one of four ranks, whose host's clock is ahead by `skew` seconds. `late`: how many seconds after
    its peers the rank makes a call, which ends 0.1 s after the last rank has made it. NCCL's ends are recorded."""
    entries = []
    for call in range(ended + pending):
        at = BEGIN_NS + round((EVERY * call + skew + 0.001 * rank) * 1e9)
        over = call < ended
        recorded = over and backend == "nccl"
        entries.append(
            {
                "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": call + 1, "p2p_seq_id": 0,
                "profiling_name": f"{backend}:all_reduce", "time_created_ns": at + round(late(call) * 1e9),
                "state": "completed" if recorded else "scheduled", "retired": over, "is_p2p": False, "input_sizes": [[8]],
                "time_discovered_completed_ns": at + 6 * 10**9 + 10**8 * (rank % 2) if recorded else None,
            }
        )  # fmt: skip
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
    return json.dumps({"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries})


def triaged(engine: Engine, folder: Path, dumps: dict[int, str], logs: dict[str, list[str]] | None = None) -> Verdict:
    for host, ranks in HOSTS.items():
        (folder / host).mkdir()
        for rank in ranks:
            (folder / host / f"nccl_trace_rank_{rank}").write_text(dumps[rank])
    for host, lines in (logs or {}).items():
        (folder / f"{host}.log").write_bytes(text(lines))
    return engine.triage(open_path(folder))


def skewed(seconds: float, **given: object) -> dict[int, str]:
    """Returns the dumps of four ranks, of which those of gpu-2 have a clock that is ahead."""
    return {rank: dump(rank, seconds if rank > 1 else 0.0, **given) for rank in range(4)}  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
@pytest.mark.parametrize("seconds", [41.0, -41.0])
def test_two_hosts_whose_clocks_differ_are_reported_by_their_dumps(
    engine: Engine, tmp_path: Path, backend: str, seconds: float
) -> None:
    (offset,) = triaged(engine, tmp_path, skewed(seconds, backend=backend)).run.clock_offsets
    ahead, behind = ("gpu-2", "gpu-1") if seconds > 0 else ("gpu-1", "gpu-2")
    assert offset == ClockOffset(ahead, 41.0, behind, 16, offset.spread)
    assert offset.spread < 1.0


def test_the_first_failure_is_chosen_by_the_times_that_dumps_correct(engine: Engine, tmp_path: Path) -> None:
    """gpu-1 failed ten seconds before gpu-2, whose clock shows an earlier time."""
    logs = {
        "gpu-1": raised("KeyError: 'image'", 0, 260.0),
        "gpu-2": raised("ValueError: bad label", 2, 260.0 + 10.0 - 41.0),
    }
    verdict = triaged(engine, tmp_path, skewed(-41.0), logs)
    root = verdict.root_cause
    assert root is not None
    assert (root.host, root.exception and root.exception.type) == ("gpu-1", "KeyError")
    assert any("gpu-1 is 41 s ahead of that of gpu-2" in reason for reason in root.reasons)


@pytest.mark.parametrize("seconds", [3.0, -3.0])
def test_a_small_offset_is_reported_by_the_ends_of_calls_alone(engine: Engine, tmp_path: Path, seconds: float) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert len(triaged(engine, tmp_path / "a", skewed(seconds)).run.clock_offsets) == 1
    assert triaged(engine, tmp_path / "b", skewed(seconds, backend="gloo")).run.clock_offsets == ()


@pytest.mark.parametrize(
    ("case", "dumps"),
    [
        ("right clocks", skewed(0.4)),
        ("a host that is slower in each step", skewed(0.0, backend="gloo", late=lambda call: 3.0) | {0: dump(0, 0, backend="gloo")}),
        ("a rank that came late once", skewed(0.0) | {2: dump(2, 0, late=lambda call: 30.0 * (call == CALLS - 3))}),
        ("only calls that did not end", skewed(41.0, ended=0, pending=20)),
        ("two launches, one after the other", skewed(3600.0)),
        ("too few common calls", skewed(41.0, ended=4)),
        ("calls far apart in the order", skewed(41.0) | {rank: dump(rank, 41.0, ended=CALLS - 30) for rank in (2, 3)}),
        ("no two calls agree", skewed(0.0, backend="gloo", late=lambda call: call % 7 * 15.0) | {rank: dump(rank, 0.0, backend="gloo") for rank in (0, 1)}),
    ],
)  # fmt: skip
def test_nothing_is_reported_where_dumps_do_not_show(
    engine: Engine, tmp_path: Path, case: str, dumps: dict[int, str]
) -> None:
    assert triaged(engine, tmp_path, dumps).run.clock_offsets == (), case


def test_times_of_logs_come_first(engine: Engine, tmp_path: Path) -> None:
    """Lines that one clock dated are not corrected by what the hosts' own clocks say."""
    logs = {"gpu-1": trained([0, 1]), "gpu-2": trained([2, 3])}
    assert triaged(engine, tmp_path, skewed(41.0), logs).run.clock_offsets == ()
