"""Before torch 2.2 an agent looked at its workers every five seconds, and all that ended in between looked alike."""

from tests.logs import BANNER, PEER_CLOSED, WAITING, report, steps, text, traceback
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

OLD = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: {}) local_rank: {} (pid: {}) of binary: /usr/bin/python3"
BUG = traceback("AttributeError: 'NoneType' object has no attribute 'mul'")
LEFT_ALONE = traceback(PEER_CLOSED, WAITING)


def test_a_rank_that_nothing_shows_is_left_open(engine: Engine) -> None:
    log = text(BANNER, steps([0]), BUG, LEFT_ALONE, LEFT_ALONE, OLD.format(1, 0, 70), report((0, 1), [(1, 1), (2, 1)]))
    root = engine.triage(from_bytes(log)).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("usage.python-error", None)


def test_where_all_failed_alike_the_first_one_is_for_them(engine: Engine) -> None:
    log = text(BANNER, steps([0]), BUG, BUG, OLD.format(1, 0, 70), report((0, 1), [(1, 1)]))
    root = engine.triage(from_bytes(log)).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("usage.python-error", 0)


def test_two_agents_that_give_up_are_one_attempt(engine: Engine) -> None:
    hosts = {"node-b1": (3, 1, -9), "node-a1": (0, 0, 1)}
    lines = [line for part in ([BANNER], steps([0], count=8)) for line in part]
    log = [f"{host}: {line}" for host in hosts for line in lines]
    log += [f"{host}: {OLD.format(code, local, 70 + rank)}" for host, (rank, local, code) in hosts.items()]
    log += [
        f"{host}: {line}" for host, (rank, _, code) in hosts.items() for line in report((rank, code), host="localhost")
    ]
    verdict = engine.triage(from_bytes(text(log)))
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.rank) == ("process.oom-killed", 3)
    assert verdict.run.attempts == 1


def test_of_two_reports_the_earlier_failure_is_reported(engine: Engine) -> None:
    late = [line.replace("09:10:00", "09:10:51") for line in report((0, 1), [(3, 1)], host="gpu-8")]
    root = engine.triage(from_bytes(text(late, report((4, 1), host="gpu-7")))).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.host) == ("elastic.child-failed", 4, "gpu-7")
