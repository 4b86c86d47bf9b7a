"""Notifies waiters when an incident is finished, whichever process triages it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from torchtriage.errors import TriageError

log = logging.getLogger(__name__)
_PAUSE = 0.1  # seconds
_AGAIN = 1.0  # seconds before the next question where one could not be answered


class CompletionEvents:
    """One question to the database at a time, for all that wait together; none while nobody does."""

    def __init__(self, ended: Callable[[list[str]], Iterable[str]]) -> None:
        """`ended` says which ids of a list have ended; where it raises, it is asked again."""
        self._ended = ended
        self._waiting: dict[str, Future[None]] = {}
        self._changing = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def wait_for(self, incident_id: str) -> Future[None]:
        """-> what ends when the incident has."""
        with self._changing:
            found = self._waiting.get(incident_id)
            if found is None:
                found = self._waiting[incident_id] = Future()
                found.set_running_or_notify_cancel()  # from here on, nobody who stops waiting can cancel it
            if self._thread is None:
                self._thread = threading.Thread(target=self._ask, name="answers", daemon=True)
                self._thread.start()
        return found

    def close(self) -> None:
        """Ends all waiting."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        self._told(list(self._waiting))

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
                self._told(self._ended(waiting))
            except TriageError as error:
                pause = _AGAIN
                log.warning("callers that wait for an incident are notified later: %s", error.message)
            except Exception:  # all who wait would do so in vain from here on
                pause = _AGAIN
                log.exception("callers that wait for an incident are notified later: the query failed")

    def _told(self, ended: Iterable[str]) -> None:
        for incident_id in ended:
            with self._changing:
                future = self._waiting.pop(incident_id, None)
            if future is not None:
                future.set_result(None)
