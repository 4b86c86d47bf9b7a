"""Delivers the outbox in threads of this process. Other processes may do so, too.

One thread at a time sends to a channel. Each channel has its own thread, so a channel that hangs does not block others.
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
_CONCURRENCY = 4  # items of one kind that are handled at the same time, for kinds without a channel
_KEEP = timedelta(seconds=LEASE / 3)
_ENDING = 0.1  # seconds between two checks whether all is sent
_AWAY = 10.0  # seconds before the next check after a failed one


class OutboxWorker:
    """Delivers the outbox. Does nothing if no channel, no model and no Slack app is configured."""

    def __init__(self, service: Service, pause: float = 1.0) -> None:
        """`pause`: seconds between two checks for due items."""
        self._service, self._pause = service, pause
        self._in_hand: dict[Future[None], OutboxItem] = {}
        self._kept_at = datetime.now(UTC)
        # The rest is for channels that were removed from the settings.
        most = len(service.channels.senders) + (len(NO_LANE) + 1) * _CONCURRENCY
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="outbox")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=OUTBOX)

    def start(self) -> None:
        settings = self._service.settings
        if self._service.channels.senders or settings.slack_signing_secret or settings.llm_url:
            self._service.heartbeats.expect(OUTBOX, _SILENT)
            self._thread.start()

    def stop(self) -> None:
        """Waits until the messages being sent have ended. The rest stays in the outbox."""
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
        while self._in_hand:  # other processes leave these items alone until they have ended
            try:
                self._keep(datetime.now(UTC))
            except Exception as error:  # noqa: BLE001  others may send these items again; no reason to hang
                log.warning("cannot write the outbox while the service stops: %s", error)
            time.sleep(_ENDING)

    def _next(self) -> tuple[OutboxItem | None, float]:
        try:
            now = datetime.now(UTC)
            self._keep(now)
            kinds = Counter(item.kind for item in self._in_hand.values())
            item = claim(self._service, now, [kind for kind in NO_LANE if kinds[kind] >= _CONCURRENCY])
        except TriageError as error:
            log.warning("cannot read the outbox now: %s", error.message)
        except Exception:  # without this loop, nobody is notified any more
            log.exception("cannot read the outbox now: reading it failed")
        else:
            self._service.heartbeats.beat(OUTBOX)
            return item, self._pause
        return None, _AWAY

    def _keep(self, now: datetime) -> None:
        """Renews the leases of the items being sent before they end; at once if the clock was set back."""
        self._in_hand = {sending: item for sending, item in self._in_hand.items() if not sending.done()}
        if self._in_hand and not self._kept_at <= now < self._kept_at + _KEEP:
            self._in_hand = dict(zip(self._in_hand, renew(self._service, self._in_hand.values(), now), strict=True))
            self._kept_at = now


def _tell(done: Future[None]) -> None:
    problem = done.exception()
    if isinstance(problem, TriageError):
        log.warning("cannot store the result of sending, trying again: %s", problem.message)
    elif problem is not None:
        log.error("sending failed, trying again", exc_info=problem)
