"""The latest time at which a serving or working command exits once it is asked to."""

from __future__ import annotations

import logging
import os
import threading

log = logging.getLogger(__name__)
_LATEST = 28  # seconds; machines wait 30 before they kill


def end_at_the_latest() -> None:
    """From now on this process has 28 seconds: where its database stands still, so does each thread that asked it.

    Nothing is lost by that: what was acknowledged is durable, and what was in hand goes to another process.
    """
    timer = threading.Timer(_LATEST, _end)
    timer.daemon = True
    timer.start()


def _end() -> None:
    log.error("did not stop within %d seconds, forcing exit", _LATEST)
    logging.shutdown()
    os._exit(1)
