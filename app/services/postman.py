"""Works the outbox from start to stop, in threads of this process; others may work it beside."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime

from app.domain.notice import OutboxItem
from app.errors import TriageError
from app.services.heartbeats import OUTBOX
from app.services.outbox import claim, work
from app.services.service import Service

log = logging.getLogger(__name__)
_SILENT = 60  # seconds without a heartbeat
_AT_ONCE = 4
_PAUSE = 1.0  # seconds between two looks at what is due
_AWAY = 10.0  # seconds before the next look where one failed


class Postman:
    """Does nothing where no channel and no model is set and nothing comes from Slack."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="outbox")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=OUTBOX)

    def start(self) -> None:
        settings = self._service.settings
        if self._service.channels.senders or settings.slack_signing_secret or settings.llm_url:
            self._service.heartbeats.expect(OUTBOX, _SILENT)
            self._thread.start()

    def stop(self) -> None:
        """Lets what is being sent end; the rest stays in the outbox."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(wait=True)

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._free.acquire(timeout=_PAUSE):
                self._service.heartbeats.beat(OUTBOX)  # all hands are busy, as with receivers that hang
                continue
            item, pause = self._next()
            if item is None:
                self._free.release()
                self._stopping.wait(pause)
            else:
                self._pool.submit(work, self._service, item, self._stopping.wait).add_done_callback(self._done)

    def _next(self) -> tuple[OutboxItem | None, float]:
        try:
            item = claim(self._service, datetime.now(UTC))
        except TriageError as error:
            log.warning("the outbox can't be read now: %s", error.message)
        except Exception:  # without this loop nobody is told anything any more
            log.exception("the outbox can't be read now: reading it broke")
        else:
            self._service.heartbeats.beat(OUTBOX)
            return item, _PAUSE
        return None, _AWAY

    def _done(self, done: Future[None]) -> None:
        self._free.release()
        problem = done.exception()
        if isinstance(problem, TriageError):
            log.warning("what came of sending can't be kept, so it is tried again: %s", problem.message)
        elif problem is not None:
            log.error("sending broke; it is tried again", exc_info=problem)
