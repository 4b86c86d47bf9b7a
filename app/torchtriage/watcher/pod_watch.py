"""Follows the pods of one namespace, or of all: lists them, then watches from there on, for as long as it takes."""

from __future__ import annotations

import logging
import threading
from functools import partial

from torchtriage.watcher.controller import Controller
from torchtriage.watcher.kubernetes_api import Cluster, ClusterError
from torchtriage.watcher.metrics import Counters
from torchtriage.watcher.pod import pod_of
from torchtriage.watcher.workers import Inbox

_log = logging.getLogger(__name__)
_GONE = 410  # the version to watch from on is too old
_LONGEST = 60.0  # seconds between two tries


class PodWatch:
    """One thread's work. `ready` is set once the pods were listed, or the API server refused."""

    def __init__(
        self, cluster: Cluster, namespace: str, selector: str, controller: Controller, inbox: Inbox, pause: float
    ) -> None:
        """`pause`: seconds before the first new try; later ones wait longer."""
        self._cluster, self._namespace, self._selector = cluster, namespace, selector
        self._controller, self._inbox, self._pause = controller, inbox, pause
        self._version = ""
        self.ready = threading.Event()

    def follow(self, stopped: threading.Event, counters: Counters) -> None:
        """Goes on until it is `stopped`. After a break it goes on where it stopped, or lists again."""
        name, breaks = self._namespace or "all", 0
        while not stopped.is_set():
            try:
                if not self._version:
                    self._list()
                    counters.watching.labels(name).set(1)
                self.ready.set()
                for kind, told in self._cluster.watch(self._namespace, self._selector, self._version):
                    breaks = 0
                    self._take(kind, told)
                    if stopped.is_set():
                        return
            except ClusterError as error:
                counters.interruptions.labels(name).inc()
                breaks += 1
                if error.status == _GONE or error.status in (401, 403):
                    self._version = ""
                if error.status in (401, 403):
                    counters.watching.labels(name).set(0)
                    self.ready.set()
                if error.status != _GONE or breaks > 1:
                    pause = min(_LONGEST, self._pause * 2.0 ** (breaks - 1))
                    _log.warning(
                        "the watch broke off",
                        extra={"namespace": name, "status": error.status, "error": str(error), "again_in": pause},
                    )
                    stopped.wait(pause)

    def _list(self) -> None:
        pods, self._version = self._cluster.pods(self._namespace, self._selector)
        self._inbox.put(partial(self._controller.listed, self._namespace, pods))

    def _take(self, kind: str, told: dict[str, object]) -> None:
        metadata = told["metadata"]
        assert isinstance(metadata, dict)
        self._version = str(metadata["resourceVersion"])
        if kind in ("ADDED", "MODIFIED"):
            self._inbox.put(partial(self._controller.changed, pod_of(told)))
        elif kind == "DELETED":
            self._inbox.put(partial(self._controller.gone, pod_of(told)))
