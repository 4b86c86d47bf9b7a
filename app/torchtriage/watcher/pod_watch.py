"""Follows the pods of one namespace, or of all: lists them once, then watches for changes."""

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
_GONE = 410  # HTTP status: the resource version to watch from is too old
_MAX_PAUSE = 60.0  # maximum seconds between two tries


class PodWatch:
    """The work of one thread. `ready` is set when the pods were listed, or when the API server refused access."""

    def __init__(
        self, cluster: Cluster, namespace: str, selector: str, controller: Controller, inbox: Inbox, pause: float
    ) -> None:
        """`pause` is the time before the first retry, in seconds; later retries wait longer."""
        self._cluster, self._namespace, self._selector = cluster, namespace, selector
        self._controller, self._inbox, self._pause = controller, inbox, pause
        self._version = ""
        self.ready = threading.Event()

    def follow(self, stopped: threading.Event, counters: Counters) -> None:
        """Follows the pods until `stopped` is set. After an interruption, continues from the last version or lists
        again."""
        name, breaks = self._namespace or "all", 0
        while not stopped.is_set():
            try:
                if not self._version:
                    self._list()
                    counters.watching.labels(name).set(1)
                self.ready.set()
                for kind, content in self._cluster.watch(self._namespace, self._selector, self._version):
                    breaks = 0
                    self._take(kind, content)
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
                    pause = min(_MAX_PAUSE, self._pause * 2.0 ** (breaks - 1))
                    _log.warning(
                        "the watch was interrupted",
                        extra={"namespace": name, "status": error.status, "error": str(error), "again_in": pause},
                    )
                    stopped.wait(pause)

    def _list(self) -> None:
        pods, self._version = self._cluster.pods(self._namespace, self._selector)
        self._inbox.put(partial(self._controller.listed, self._namespace, pods))

    def _take(self, kind: str, content: dict[str, object]) -> None:
        metadata = content["metadata"]
        assert isinstance(metadata, dict)
        self._version = str(metadata["resourceVersion"])
        if kind in ("ADDED", "MODIFIED"):
            self._inbox.put(partial(self._controller.changed, pod_of(content)))
        elif kind == "DELETED":
            self._inbox.put(partial(self._controller.gone, pod_of(content)))
