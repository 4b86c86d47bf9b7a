"""The queue in one process."""

from __future__ import annotations

import threading

from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from torchtriage.queue.memory_queue import MemoryQueue


def test_an_id_put_during_its_work_is_worked_once_more() -> None:
    """A report of another node may come when the work has looked for the last time."""
    begun, go_on, worked = threading.Event(), threading.Event(), threading.Semaphore(0)

    def work(_: str) -> None:
        begun.set()
        assert go_on.wait(60)
        worked.release()

    queue = MemoryQueue(work, 2)
    with Session(create_engine("sqlite://")) as session:
        for _ in range(3):
            queue.put(session, [("7", 100)])
            session.execute(text("SELECT 1"))
            session.commit()
            assert begun.wait(60)
    go_on.set()
    assert worked.acquire(timeout=60)
    assert worked.acquire(timeout=60)
    queue.stop()
    assert not worked.acquire(blocking=False)  # twice, however often it was put in meanwhile
    assert queue.find("7") is None
