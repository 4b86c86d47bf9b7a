"""The four calls to the API server: list pods, watch pods, read a log, list events.

The official client finds the server and authenticates. Answers are read as a stream, because they can be of any size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kubernetes
import urllib3

from torchtriage.errors import SettingError
from torchtriage.watcher.pod import Json, Pod, pod_of

_PAGE = 500  # objects per answer
_CONNECT, _READ = 10, 60  # timeouts in seconds
_WATCHED = 240  # seconds after which the server ends a watch, so that a dead connection is noticed


class ClusterError(Exception):
    """The API server did not answer, or refused the call. `status` is the HTTP status, or 0 without an answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Cluster:
    """An API server. Every method raises ClusterError and can be called from several threads."""

    def __init__(self, configuration: Any) -> None:
        self._core = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))

    def pods(self, namespace: str, selector: str) -> tuple[list[Pod], str]:
        """Returns all pods of a namespace, or of all namespaces if it is empty, and the resource version to watch
        from."""
        found: list[Pod] = []
        version, ask = "", self._asking(namespace, selector)
        for page in self._pages(ask):
            found += map(pod_of, page.get("items") or [])
            version = version or page["metadata"].get("resourceVersion") or ""
        return found, version

    def watch(self, namespace: str, selector: str, version: str) -> Iterator[tuple[str, Json]]:
        """Yields ADDED, MODIFIED, DELETED or BOOKMARK, and the object, until the server ends the watch."""
        ask = self._asking(namespace, selector)
        asked = {"watch": True, "allow_watch_bookmarks": True, "timeout_seconds": _WATCHED}
        with _answer(ask, resource_version=version, _request_timeout=(_CONNECT, _WATCHED + _READ), **asked) as answer:
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ClusterError(int(event["object"].get("code") or 0), str(event["object"].get("message")))
                yield event["type"], event["object"]

    def log(self, pod: Pod, container: str, previous: bool) -> Iterator[bytes]:
        """Yields the log of a container's newest start, or of the start before it. Each line begins with a
        timestamp."""
        ask, options = self._core.read_namespaced_pod_log, {"timestamps": True, "previous": previous}
        with _answer(ask, pod.name, pod.namespace, container=container, **options) as answer:
            yield from answer.stream(1 << 16)

    def events(self, namespace: str) -> Iterator[Json]:
        """Yields the events of a namespace. The server keeps them for one hour by default."""
        for page in self._pages(lambda **more: self._core.list_namespaced_event(namespace, **more)):
            yield from page.get("items") or []

    def _asking(self, namespace: str, selector: str) -> Any:
        more = {"label_selector": selector} if selector else {}
        if namespace:
            return lambda **asked: self._core.list_namespaced_pod(namespace, **more, **asked)
        return lambda **asked: self._core.list_pod_for_all_namespaces(**more, **asked)

    def _pages(self, ask: Any) -> Iterator[Json]:
        more: dict[str, str] = {}
        while True:
            with _answer(ask, limit=_PAGE, **more) as answer:
                page: Json = json.loads(answer.read())
            yield page
            if not page["metadata"].get("continue"):
                return
            more = {"_continue": page["metadata"]["continue"]}


def connected(config: Path | None, context: str | None) -> Cluster:
    """Returns the cluster of a kubeconfig file, or else the one in which this pod runs. Raises SettingError if there is
    neither."""
    configuration = kubernetes.client.Configuration()
    try:
        if config is None and context is None:
            try:
                kubernetes.config.load_incluster_config(configuration)
                return Cluster(configuration)
            except kubernetes.config.ConfigException:
                pass  # this process does not run in a pod
        kubernetes.config.load_kube_config(str(config) if config else None, context, client_configuration=configuration)
    except (kubernetes.config.ConfigException, OSError) as error:
        raise SettingError(f"no cluster to watch: {error}") from None
    return Cluster(configuration)


@contextmanager
def _answer(ask: Any, *about: str, **asked: Any) -> Iterator[Any]:
    """Yields the answer to a call as a stream. Raises ClusterError."""
    options = {"_preload_content": False, "_request_timeout": (_CONNECT, _READ)}
    try:
        answer = ask(*about, **(options | asked))
        try:
            yield answer
        finally:
            answer.close()
            answer.release_conn()
    except kubernetes.client.ApiException as error:
        raise ClusterError(error.status or 0, _error_text(error)) from None
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise ClusterError(0, f"{type(error).__name__}: {error}") from None


def _error_text(error: Any) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason)
