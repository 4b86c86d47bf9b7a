from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torchtriage.queue.completion_events import CompletionEvents
from torchtriage.storage.database import StorageUnavailable


@contextmanager
def answers(known: set[str], away: threading.Event | None = None) -> Iterator[CompletionEvents]:
    def ended(ids: list[str]) -> list[str]:
        if away is not None and not away.is_set():
            away.set()
            raise StorageUnavailable("away")
        return [known_id for known_id in ids if known_id in known]

    made = CompletionEvents(ended)
    yield made
    made.close()


def test_a_waiting_caller_is_notified_of_the_end() -> None:
    known: set[str] = set()
    with answers(known) as made:
        waiting, other = made.wait_for("1"), made.wait_for("2")
        assert made.wait_for("1") is waiting
        known.add("1")
        assert waiting.result(timeout=60) is None
        assert not other.done()
        known.add("3")
        assert made.wait_for("3").result(timeout=60) is None
    assert other.done()


def test_the_query_is_repeated_after_an_outage() -> None:
    away = threading.Event()
    with answers({"1"}, away) as made:
        assert made.wait_for("1").result(timeout=60) is None
    assert away.is_set()


def test_a_thread_that_ended_is_started_again() -> None:
    with answers({"1", "2"}) as made:
        for known in ("1", "2"):
            assert made.wait_for(known).result(timeout=60) is None
            while made._thread is not None:
                pass
