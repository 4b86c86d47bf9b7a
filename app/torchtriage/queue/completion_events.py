"""Notifies waiting callers when an incident is finished, no matter which process triages it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from torchtriage.errors import TriageError

log = logging.getLogger(__name__)
_PAUSE = 0.1  # seconds
_AGAIN = 1.0  # seconds before the next query after a failed one


class CompletionEvents:
    """Runs one query at a time for all waiting callers together, and none if nobody waits."""

    def __init__(self, ended: Callable[[list[str]], Iterable[str]]) -> None:
        """`ended` returns those of a list of ids that have ended. If it raises, it is called again."""
        self._ended = ended
        self._waiting: dict[str, Future[None]] = {}
        self._changing = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def wait_for(self, incident_id: str) -> Future[None]:
        """Returns a future that ends when the incident has ended."""
        with self._changing:
            found = self._waiting.get(incident_id)
            if found is None:
                found = self._waiting[incident_id] = Future()
                # Marks it as running, so that a caller that stops waiting cannot cancel it for others.
                found.set_running_or_notify_cancel()
            if self._thread is None:
                self._thread = threading.Thread(target=self._ask, name="answers", daemon=True)
                self._thread.start()
        return found

    def close(self) -> None:
        """Ends all waits."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        self._on_ended(list(self._waiting))

    def _ask(self) -> None:
        pause = _PAUSE
        while not self._closing.wait(pause):
            pause = _PAUSE
            with self._changing:
                waiting = list(self._waiting)
                if not waiting:
                    self._thread = None
                    return
            try:
                self._on_ended(self._ended(waiting))
            except TriageError as error:
                pause = _AGAIN
                log.warning("callers that wait for an incident are notified later: %s", error.message)
            except Exception:  # otherwise all callers would wait forever
                pause = _AGAIN
                log.exception("callers that wait for an incident are notified later: the query failed")

    def _on_ended(self, ended: Iterable[str]) -> None:
        for incident_id in ended:
            with self._changing:
                future = self._waiting.pop(incident_id, None)
            if future is not None:
                future.set_result(None)
