"""Sends packed reports to the service. Reports that it cannot take now stay in the spool."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from torchtriage.client.torchtriage_client import Undelivered, deliver
from torchtriage.watcher.metrics import Counters
from torchtriage.watcher.options import Options

_log = logging.getLogger(__name__)
_MAX_PAUSE = 60.0  # maximum seconds between two tries
_TIMEOUT = 300.0


def keep_delivering(options: Options, counters: Counters, packed: threading.Event, stopped: threading.Event) -> None:
    """Delivers the reports in the spool each time `packed` is set, and at least once a minute, until `stopped` is
    set."""
    failed = 0
    while not stopped.is_set():
        packed.clear()
        try:
            deliver_all(options, counters, stopped)
            failed = 0
        except Undelivered as error:
            failed += 1
            _log.warning(
                "the service does not accept reports", extra={"error": str(error), "waiting": len(_bundles(options))}
            )
        counters.waiting.set(len(_bundles(options)))
        if failed:
            stopped.wait(min(_MAX_PAUSE, 2.0 ** (failed - 1)))
        else:
            packed.wait(_MAX_PAUSE)


def deliver_all(options: Options, counters: Counters, stopped: threading.Event) -> None:
    """Delivers each report in the spool, oldest first. Raises Undelivered if the service is not available."""
    for path in _bundles(options):
        if stopped.is_set():
            return
        try:
            incident = deliver(options.client, str(path), time.monotonic() + _TIMEOUT, 0)
        except Undelivered as error:
            if not error.final:
                raise
            counters.reports.labels("refused").inc()
            _log.error(
                "the service refused a report; it will not be sent again",
                extra={"report": path.name, "error": str(error)},
            )
            continue
        if incident is not None:
            counters.reports.labels("delivered").inc()
            job = incident.get("job") or {}
            _log.info(
                "report delivered",
                extra={"job": job.get("job_name"), "attempt": job.get("attempt"), "incident": incident.get("url")},
            )


def _bundles(options: Options) -> list[Path]:
    return sorted(options.spool.glob("*.bundle"))
