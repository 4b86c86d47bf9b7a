"""Limits how long a server or worker may take to exit."""

from __future__ import annotations

import logging
import os
import threading

log = logging.getLogger(__name__)
_LATEST = 28  # seconds; service managers usually kill a process after 30


def end_at_the_latest() -> None:
    """Ends this process in at most 28 seconds. A thread that waits for a database that does not answer cannot be ended
    otherwise.

    No data is lost: acknowledged logs are durable, and another process takes over unfinished ones.
    """
    timer = threading.Timer(_LATEST, _end)
    timer.daemon = True
    timer.start()


def _end() -> None:
    log.error("did not stop within %d seconds, forcing exit", _LATEST)
    logging.shutdown()
    os._exit(1)
