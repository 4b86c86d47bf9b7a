"""The whole watcher: one thread per namespace, one for delivery, and the controller in the calling thread."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from queue import Empty

from torchtriage.errors import TriageError
from torchtriage.watcher.controller import Controller
from torchtriage.watcher.delivery import keep_delivering
from torchtriage.watcher.health import answering
from torchtriage.watcher.kubernetes_api import Cluster
from torchtriage.watcher.metrics import Counters
from torchtriage.watcher.options import Options
from torchtriage.watcher.pod_watch import PodWatch
from torchtriage.watcher.report_history import ReportHistory, recall
from torchtriage.watcher.workers import Inbox, Workers

_log = logging.getLogger(__name__)
_QUEUE_SIZE = 1000  # maximum changes that wait for the controller; then the watches wait
_STUCK = 60.0  # seconds without a tick after which the watcher counts as stuck


class Watcher:
    """Watches one cluster."""

    def __init__(self, options: Options, cluster: Cluster) -> None:
        self._options, self._cluster = options, cluster
        self.counters = Counters()
        self.stopped = threading.Event()
        self.port = 0
        self._packed = threading.Event()
        self._ticked = time.monotonic()

    def stop(self) -> None:
        """Makes `run` return."""
        self.stopped.set()
        self._packed.set()

    def run(self) -> None:
        """Watches until `stop` is called. Raises TriageError if its folder or port cannot be used."""
        options = self._options
        inbox: Inbox = Inbox(_QUEUE_SIZE)
        workers = Workers(options, self._cluster, inbox)
        try:
            options.attempts.mkdir(parents=True, exist_ok=True)
            options.spool.mkdir(0o700, parents=True, exist_ok=True)
            controller = Controller(options, self._load_history(), workers, self.counters)
            workers.controller = controller
            controller.recover()
        except OSError as error:
            raise TriageError(f"the watcher's folder: {error}") from None
        watchings = [
            PodWatch(self._cluster, namespace, options.selector, controller, inbox, options.tick)
            for namespace in options.namespaces or ("",)
        ]
        delivering = (options, self.counters, self._packed, self.stopped)
        threads = [threading.Thread(target=each.follow, args=(self.stopped, self.counters), daemon=True)
                   for each in watchings]  # fmt: skip
        threads.append(threading.Thread(target=keep_delivering, args=delivering, daemon=True))
        try:
            with answering(
                options.host,
                options.port,
                lambda: time.monotonic() - self._ticked < _STUCK and all(thread.is_alive() for thread in threads),
                lambda: all(each.ready.is_set() for each in watchings),
                self.counters,
                options.tick,
            ) as self.port:
                for thread in threads:
                    thread.start()
                self._work(controller, inbox)
                threads[-1].join(5)
        except OSError as error:
            raise TriageError(f"port {options.port} can't be used: {error.strerror}") from None
        finally:
            self.stop()
            workers.stop()
            while not inbox.empty():  # else threads that put a change into a full queue would block
                inbox.get()

    def _load_history(self) -> ReportHistory:
        path = self._options.folder / "reported.json"
        try:
            return recall(path)
        except ValueError as error:
            _log.warning("cannot read the history of reports, so some may be sent again", extra={"error": str(error)})
            return ReportHistory(path)

    def _work(self, controller: Controller, inbox: Inbox) -> None:
        ticked = 0.0
        while not self.stopped.is_set():
            with suppress(Empty):
                inbox.get(timeout=self._options.tick)()
            self._ticked = time.monotonic()
            if self._ticked - ticked >= self._options.tick:
                ticked = self._ticked
                controller.tick(time.time())
                if any(self._options.spool.glob("*.bundle")):
                    self._packed.set()
