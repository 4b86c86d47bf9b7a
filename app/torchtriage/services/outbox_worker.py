"""Delivers the outbox from start to stop, in threads of this process; other processes may do so too.

A channel is sent to by one thread at a time, and there is a thread for each: one that hangs holds up no other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from torchtriage.domain.notice import OutboxItem
from torchtriage.errors import TriageError
from torchtriage.services.heartbeats import OUTBOX
from torchtriage.services.outbox import LEASE, NO_LANE, claim, renew, work
from torchtriage.services.service import Service

log = logging.getLogger(__name__)
_SILENT = 60  # seconds without a heartbeat
_AT_ONCE = 4  # of a kind of work that has no lane
_KEEP = timedelta(seconds=LEASE / 3)
_ENDING = 0.1  # seconds between two looks whether all is sent
_AWAY = 10.0  # seconds before the next look where one failed


class OutboxWorker:
    """Does nothing where no channel and no model is set and nothing comes from Slack."""

    def __init__(self, service: Service, pause: float = 1.0) -> None:
        """`pause`: seconds between two looks at what is due."""
        self._service, self._pause = service, pause
        self._in_hand: dict[Future[None], OutboxItem] = {}
        self._kept_at = datetime.now(UTC)
        most = len(service.channels.senders) + (len(NO_LANE) + 1) * _AT_ONCE  # and some for channels that are no more
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="outbox")
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
            item, pause = self._next()
            if item is None:
                self._stopping.wait(pause)
            else:
                sending = self._pool.submit(work, self._service, item, self._stopping.wait)
                sending.add_done_callback(_tell)
                self._in_hand[sending] = item
        while self._in_hand:  # others leave it alone until it has ended
            try:
                self._keep(datetime.now(UTC))
            except Exception as error:  # noqa: BLE001  what can't be kept from others they send again, which is no reason to hang
                log.warning("the outbox can't be written while the service stops: %s", error)
            time.sleep(_ENDING)

    def _next(self) -> tuple[OutboxItem | None, float]:
        try:
            now = datetime.now(UTC)
            self._keep(now)
            kinds = Counter(item.kind for item in self._in_hand.values())
            item = claim(self._service, now, [kind for kind in NO_LANE if kinds[kind] >= _AT_ONCE])
        except TriageError as error:
            log.warning("the outbox can't be read now: %s", error.message)
        except Exception:  # without this loop nobody is told anything any more
            log.exception("the outbox can't be read now: reading it failed")
        else:
            self._service.heartbeats.beat(OUTBOX)
            return item, self._pause
        return None, _AWAY

    def _keep(self, now: datetime) -> None:
        """Keeps others from what is being sent, before they may take it; at once where the clock has gone back."""
        self._in_hand = {sending: item for sending, item in self._in_hand.items() if not sending.done()}
        if self._in_hand and not self._kept_at <= now < self._kept_at + _KEEP:
            self._in_hand = dict(zip(self._in_hand, renew(self._service, self._in_hand.values(), now), strict=True))
            self._kept_at = now


def _tell(done: Future[None]) -> None:
    problem = done.exception()
    if isinstance(problem, TriageError):
        log.warning("what came of sending can't be kept, so it is tried again: %s", problem.message)
    elif problem is not None:
        log.error("sending failed; it is tried again", exc_info=problem)
