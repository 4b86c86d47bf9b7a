"""Servers and workers whose Postgres is gone for a while, or for a moment again and again: they go on by themselves."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests import postgres as servers
from tests.command_process import TIMEOUT, Running, Sender, command, states, until
from tests.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
RECOVERY = 90  # seconds after an outage in which all that was acknowledged must be triaged
OUTAGES = (5, 45, 100, 240)  # seconds
MANY = 2_000  # incidents


@pytest.fixture
def programs() -> Path:
    found = servers.find_programs()
    if found is None:
        pytest.skip(servers.MISSING)
    return found


@contextmanager
def whole(programs: Path, folder: Path) -> Iterator[tuple[PostgresServer, str, Running]]:
    """A Postgres of its own, its database's address, and a server with a worker beside it."""
    with ExitStack() as stack:
        server = stack.enter_context(PostgresServer(programs))
        url = stack.enter_context(server.database())
        serving = stack.enter_context(command("serve", folder, url))
        stack.enter_context(command("worker", folder, url))
        yield server, url, serving


def all_end(url: str) -> None:
    """Waits until all are triaged. How long the backlog takes is the machine's affair: what was left behind shows when no
    other ends any more."""

    def left() -> int:
        return sum(state != "triaged" for state in states(url).values())

    while waiting := left():
        until(partial(fewer, left, waiting), RECOVERY)


def fewer(count: Callable[[], int], than: int) -> bool:
    return count() < than


def outage(programs: Path, folder: Path, seconds: float) -> None:
    with whole(programs, folder) as (server, url, serving):
        with Sender(serving) as sender:
            sender.more(20)
            # As it crashes, or as its machine stands still: then connections stay, and nobody answers.
            with server.stopped() if seconds != OUTAGES[1] else server.suspended():
                time.sleep(seconds)
                assert serving.ask("GET", "/readyz")[0] == 503
            recovered = time.monotonic()
            sender.more(20)
        assert sender.refused <= {503, 0}, sender.refused  # 0: the sender did not wait any longer

        def all_is_well() -> bool:
            known = states(url)
            return all(known[one] == "triaged" for one in sender.accepted) and serving.ask("GET", "/readyz")[0] == 200

        until(all_is_well, recovered + RECOVERY - time.monotonic())


def test_after_an_outage_of_any_length_all_that_was_acknowledged_is_triaged(programs: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(len(OUTAGES)) as pool:  # beside one another, as most of it is waiting
        for one in [pool.submit(outage, programs, tmp_path / str(seconds), seconds) for seconds in OUTAGES]:
            one.result()


def test_connections_that_break_repeatedly_leave_no_incident_waiting(programs: Path, tmp_path: Path) -> None:
    dice = random.Random(1)
    with whole(programs, tmp_path / "data") as (server, url, serving), ExitStack() as senders:
        each = [senders.enter_context(Sender(serving, 0.01, name)) for name in "abcd"]
        cuts = 0
        deadline = time.monotonic() + 2 * TIMEOUT
        while sum(len(sender.accepted) for sender in each) < MANY and time.monotonic() < deadline:
            time.sleep(dice.uniform(0.1, 1))
            server.disconnect_all()
            cuts += 1
            if cuts % 15 == 0:
                with server.stopped():
                    time.sleep(dice.uniform(0, 3))
        senders.close()
        accepted = {known for sender in each for known in sender.accepted}
        assert len(accepted) > MANY / 10  # as many as a busy machine takes in
        all_end(url)
        assert set(states(url)) >= accepted


def test_a_database_that_hangs_prevents_no_process_from_ending(programs: Path, tmp_path: Path) -> None:
    with whole(programs, tmp_path / "data") as (server, _, serving), Sender(serving, 0.02) as sender:
        sender.more(30)
        with server.suspended():
            until(lambda: serving.ask("GET", "/readyz")[0] == 503)
            serving.process.terminate()
            assert serving.process.wait(timeout=TIMEOUT) == 1  # which says that it was ended, after 28 seconds
