"""Does slow work in a few threads: reads logs from the cluster into files, packs bundles. Passes the results to the
controller."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Queue

from torchtriage.watcher.attempt import Attempt, Wanted
from torchtriage.watcher.controller import Controller
from torchtriage.watcher.kubernetes_api import Cluster, ClusterError
from torchtriage.watcher.log_capture import keep_log
from torchtriage.watcher.options import Options
from torchtriage.watcher.pod import Json
from torchtriage.watcher.report import write_report

MB = 1 << 20
THREADS = 8
Inbox = Queue[Callable[[], None]]
_FINAL = (400, 401, 403, 404, 410)  # HTTP statuses after which a log is not requested again


class Workers:
    """The worker threads. Calls of the controller go through `inbox`, so that its own thread makes them."""

    def __init__(self, options: Options, cluster: Cluster, inbox: Inbox) -> None:
        self._options, self._cluster, self._inbox = options, cluster, inbox
        self._pool = ThreadPoolExecutor(THREADS, "watcher")
        self.controller: Controller

    def read(self, attempt: Attempt, wanted: Wanted) -> None:
        most = max(MB, min(64 * MB, self._options.client.max_bytes // max(1, len(attempt.pods))))
        path = attempt.path(wanted.pod, wanted.container, wanted.start)
        part = path.with_name(f"{path.name}.{wanted.stage}.part")

        def work() -> None:
            problem, again = "", False
            try:
                keep_log(self._cluster.log(wanted.pod, wanted.container, wanted.previous), part, most)
            except ClusterError as error:
                problem, again = str(error), error.status not in _FINAL
            except OSError as error:
                problem, again = f"the folder of the watcher: {error}", True
            self._inbox.put(partial(self.controller.read, attempt, wanted, part, problem, again))

        self._pool.submit(work)

    def pack(self, attempt: Attempt) -> None:
        def work() -> None:
            problem = ""
            try:
                write_report(attempt, self._options.client, self._options.users, self._events(attempt))
            except OSError as error:
                problem = str(error)
            self._inbox.put(partial(self.controller.packed, attempt, problem))

        self._pool.submit(work)

    def _events(self, attempt: Attempt) -> list[Json]:
        """Returns the events of the attempt's pods and job, or none if the cluster does not answer."""
        names = {attempt.job.name, *(pod.name for pod in attempt.pods.values())}
        try:
            events = self._cluster.events(attempt.job.namespace)
            return [event for event in events if event["involvedObject"].get("name") in names]
        except ClusterError:
            return []

    def stop(self) -> None:
        """Starts no more work. The next watcher continues unfinished work."""
        self._pool.shutdown(wait=False, cancel_futures=True)
