"""How far the clocks of hosts are apart, by the steps that they log together, and what follows for the first failure."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.evidence.reports import DMESG
from tests.logs import agent, report, text, traceback
from torchtriage.answer.brief.brief import brief, lines_needed
from torchtriage.answer.reasons import reason_sentences
from torchtriage.domain.verdict import ClockOffset, Verdict
from torchtriage.engine import Engine
from torchtriage.reading.reread_lines import reread
from torchtriage.reading.sources import from_bytes, open_path
from torchtriage.storage.verdict_json import from_stored, to_stored

BEGIN = datetime(2026, 5, 1, 9, 0, 0)
STEPS = 12
EVERY = 10.0  # seconds


def clock(seconds: float) -> str:
    """Returns what a logger writes that many seconds after the beginning."""
    return (BEGIN + timedelta(seconds=seconds)).isoformat(" ", "milliseconds").replace(".", ",")


def trained(
    ranks: list[int],
    skew: float = 0.0,
    steps: int = STEPS,
    first: int = 0,
    late: Callable[[int], float] = lambda step: 0.0,
) -> list[str]:
    """Returns what ranks of one host log, whose clock is ahead by `skew` seconds. `late`: how long after the step."""
    return [
        f"{clock(EVERY * step + skew + late(step) + 0.01 * rank)} INFO [rank {rank}] step {step} loss {3 / (step + 1):.4f}"
        for step in range(first, first + steps)
        for rank in ranks
    ]


def raised(error: str, rank: int, at: float) -> list[str]:
    """Returns how a rank fails, when its host's clock shows `at`."""
    return [f"{clock(at)} ERROR [rank {rank}] training failed", *traceback(error, prefix=f"[rank{rank}]: ")]


def triage(engine: Engine, folder: Path, hosts: dict[str, list[str]]) -> Verdict:
    for host, lines in hosts.items():
        (folder / f"{host}.log").write_bytes(text(lines))
    return engine.triage(open_path(folder))


def offsets(verdict: Verdict) -> dict[str, tuple[float, str, int]]:
    """Returns seconds, reference and count, by host."""
    known = verdict.run.clock_offsets
    return {offset.host: (round(offset.seconds), offset.reference, offset.events) for offset in known}


@pytest.mark.parametrize(("skew", "said"), [(-41.0, "gpu-3 is 41 s ahead of that of gpu-7"), (41.0, None)])
def test_the_first_failure_is_chosen_by_corrected_times(
    engine: Engine, tmp_path: Path, skew: float, said: str | None
) -> None:
    """gpu-3 failed ten seconds before gpu-7, whose clock shows an earlier time."""
    end = EVERY * STEPS
    verdict = triage(
        engine,
        tmp_path,
        {
            "gpu-3": [*trained([0, 1]), *raised("KeyError: 'image'", 0, end)],
            "gpu-7": [*trained([2, 3], skew), *raised("ValueError: bad label", 2, end + 10 + skew)],
        },
    )
    root = verdict.root_cause
    assert root is not None
    assert (root.rank, root.host, root.exception and root.exception.type) == (0, "gpu-3", "KeyError")
    ahead, behind = ("gpu-3", "gpu-7") if skew < 0 else ("gpu-7", "gpu-3")
    assert offsets(verdict) == {ahead: (41, behind, STEPS)}
    assert any((said or "gpu-7 is 41 s ahead of that of gpu-3") in reason for reason in root.reasons)
    assert any(f"{ahead} 的时钟比 {behind} 快 41 秒" in reason for reason in reason_sentences(root.because, "zh"))


@pytest.mark.parametrize("skew", [-75.0, 75.0])
def test_of_three_hosts_the_one_whose_clock_differs_is_named(engine: Engine, tmp_path: Path, skew: float) -> None:
    hosts = {"gpu-1": trained([0], skew), "gpu-2": trained([1], 0.3), "gpu-3": trained([2])}
    verdict = triage(engine, tmp_path, hosts)
    assert verdict.root_cause is None
    assert set(offsets(verdict)) == {"gpu-1"}
    assert verdict.run.clock_offsets[0].seconds == pytest.approx(skew, abs=0.4)


def test_the_process_that_agents_saw_end_first_is_named_by_corrected_times(engine: Engine, tmp_path: Path) -> None:
    """Each agent's report names its own first failure, with its host's time."""

    def reported(host: str, rank: int, at: float) -> list[str]:
        time = BEGIN + timedelta(seconds=at)
        ended = agent(1, rank).replace("E0501 09:10:00", time.strftime("E%m%d %H:%M:%S"))
        table = report((rank, 1), host=host)
        return [ended, *(line.replace("2026-05-01_09:10:00", time.strftime("%Y-%m-%d_%H:%M:%S")) for line in table)]

    end = EVERY * STEPS
    verdict = triage(
        engine,
        tmp_path,
        {
            "gpu-3": [*trained([0, 1]), *reported("gpu-3", 0, end + 30)],
            "gpu-7": [*trained([2, 3], 60.0), *reported("gpu-7", 2, end + 10 + 60)],
        },
    )
    assert offsets(verdict) == {"gpu-7": (60, "gpu-3", STEPS)}
    assert verdict.root_cause is not None
    assert (verdict.root_cause.rank, verdict.root_cause.host) == (2, "gpu-7")


@pytest.mark.parametrize(("skew", "failed", "entry"), [(200.0, 300.0, "xid.79"), (0.0, 100.0, "nccl.remote-error")])
def test_what_the_kernel_reports_is_compared_by_corrected_times(
    engine: Engine, tmp_path: Path, skew: float, failed: float, entry: str
) -> None:
    """Both reports are 190 s later than the failure by their own clock; one of these clocks is 200 s ahead."""
    lost = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
    hosts = {"gpu-3": [*trained([0], steps=31), *raised(f"torch.distributed.DistBackendError: {lost}", 0, failed)]}
    time = (BEGIN + timedelta(seconds=failed + 190)).ctime()
    (tmp_path / "dmesg.gpu-7.txt").write_text(DMESG.format(time=time))
    verdict = triage(engine, tmp_path, {**hosts, "gpu-7": trained([1], skew, steps=31)})
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == entry


def test_whole_seconds_and_one_late_line_leave_the_offset(engine: Engine, tmp_path: Path) -> None:
    own = [line[:19] + line[23:] for line in trained([1], -3.6, late=lambda step: 40.0 if step == 4 else 0.37)]
    verdict = triage(engine, tmp_path, {"gpu-1": [line[:19] + line[23:] for line in trained([0])], "gpu-2": own})
    (offset,) = verdict.run.clock_offsets
    assert (offset.host, offset.reference, offset.events) == ("gpu-1", "gpu-2", STEPS - 1)
    assert offset.seconds == pytest.approx(3.5, abs=0.6)
    assert offset.spread <= 1.0


@pytest.mark.parametrize(
    ("case", "other"),
    [
        ("clocks that agree", trained([1], 1.2)),
        ("jitter", trained([1], 0.0, late=lambda step: (step * 17 % 60) / 10)),
        ("too few common steps", trained([1], 41.0, steps=4)),
        ("steps of another part of the run", trained([1], 41.0, first=STEPS)),
        ("steps that take longer", trained([1], 5.0, late=lambda step: 0.8 * step)),
        ("a later launch", trained([1], 600.0)),
        ("epochs and steps that differ", [line.replace("step", "epoch 3 step") for line in trained([1], 41.0)]),
    ],
)
def test_nothing_is_said_where_steps_do_not_show(engine: Engine, tmp_path: Path, case: str, other: list[str]) -> None:
    verdict = triage(engine, tmp_path, {"gpu-1": trained([0]), "gpu-2": other})
    assert verdict.run.step is not None
    assert verdict.run.clock_offsets == (), case


def test_one_host_has_no_offset(engine: Engine, tmp_path: Path) -> None:
    assert engine.triage(from_bytes(text(trained([0, 1])))).run.clock_offsets == ()
    assert triage(engine, tmp_path, {"gpu-1": trained([0, 1])}).run.clock_offsets == ()


def test_ranks_of_one_file_are_compared_where_lines_name_their_hosts(engine: Engine) -> None:
    placed = [
        f"gpu-{rank}:41:41 [0] NCCL INFO comm 0x7f rank {rank} nRanks 2 nNodes 2 - Init COMPLETE" for rank in (0, 1)
    ]
    both = [line for pair in zip(trained([0]), trained([1], 25.0), strict=True) for line in pair]
    assert offsets(engine.triage(from_bytes(text(placed, both)))) == {"gpu-1": (25, "gpu-0", STEPS)}


def test_the_first_steps_of_a_long_run_are_enough(engine: Engine, tmp_path: Path) -> None:
    hosts = {"gpu-1": trained([0, 1], steps=9000), "gpu-2": trained([2, 3], 41.0, steps=9000)}
    ((host, (seconds, _, count)),) = offsets(triage(engine, tmp_path, hosts)).items()
    assert (host, seconds) == ("gpu-2", 41)
    assert 5 <= count <= 64


def test_the_brief_shows_of_it(engine: Engine, tmp_path: Path) -> None:
    hosts = {"gpu-1": trained([0]), "gpu-2": [*trained([1], 41.0), *raised("KeyError: 'image'", 1, 200.0)]}
    verdict = triage(engine, tmp_path, hosts)
    seen = reread(open_path(tmp_path), lines_needed(verdict))
    assert "- clock of gpu-2: 41.0 s ahead of gpu-1 (12 common steps)" in brief(verdict, seen).text
    assert "gpu-2 的时钟比 gpu-1 快 41.0 秒（12 个共同的 step）" in brief(verdict, seen, "zh").text


def test_it_is_stored_and_older_verdicts_are_read(engine: Engine, tmp_path: Path) -> None:
    verdict = triage(engine, tmp_path, {"gpu-1": trained([0]), "gpu-2": trained([1], 41.0)})
    assert verdict.run.clock_offsets == (ClockOffset("gpu-2", 41.0, "gpu-1", STEPS, 0.0),)
    stored = json.loads(json.dumps(to_stored(verdict)))
    values = {"host": "gpu-2", "seconds": 41.0, "reference": "gpu-1", "events": STEPS, "spread": 0.0}
    assert stored["run"]["clock_offsets"] == [values]
    assert from_stored(stored) == verdict
    del stored["run"]["clock_offsets"]
    assert from_stored(stored).run.clock_offsets == ()
