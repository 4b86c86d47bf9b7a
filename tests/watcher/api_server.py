"""An API server that answers as Kubernetes does, as far as the watcher asks: over real HTTP, in the API's own forms.

Paging, chunked watches with bookmarks, expired versions (410), logs of starts before, refused namespaces, RBAC's verbs.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
TOKEN = "a-service-account-token"


class Asked(NamedTuple):
    """A call as RBAC sees it."""

    verb: str
    resource: str
    namespace: str


class ApiServer:
    """What is in the cluster, and what was asked of it. Everything that changes wakes the watches."""

    def __init__(self) -> None:
        self.url = ""
        self.pods: dict[tuple[str, str], Json] = {}
        self.logs: dict[tuple[str, str, int], str] = {}  # UID, container, start
        self.events: list[Json] = []
        self.asked: list[Asked] = []
        self.refused: set[str] = set()  # namespaces
        self.down = False
        self.page = 2  # objects an answer, whatever more is asked for
        self.changed = threading.Condition(threading.RLock())
        self._version, self._oldest, self._breaks = 1000, 1000, 0
        self._history: list[tuple[int, str, Json]] = []
        self._lists: dict[int, list[Json]] = {}

    # ------------------------------------------------ what happens in the cluster

    def apply(self, *pods: Json) -> None:
        with self.changed:
            for pod in pods:
                key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                self._tell("MODIFIED" if key in self.pods else "ADDED", pod)
                self.pods[key] = copy.deepcopy(pod)

    def delete(self, *pods: Json) -> None:
        """Pods are gone, and their logs with them."""
        with self.changed:
            for pod in pods:
                self.pods.pop((pod["metadata"]["namespace"], pod["metadata"]["name"]))
                for key in [key for key in self.logs if key[0] == pod["metadata"]["uid"]]:
                    del self.logs[key]
                self._tell("DELETED", pod)

    def expire(self) -> None:
        """Forgets what changed until now, as etcd does after some minutes, and ends the watches."""
        with self.changed:
            self._version += 100
            self._history.clear()
            self._oldest = self._version
        self.interrupt()

    def interrupt(self) -> None:
        """Ends the watches in the middle of their answer."""
        with self.changed:
            self._breaks += 1
            self.changed.notify_all()

    def bookmark(self) -> None:
        with self.changed:
            self._version += 1
            empty = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(self._version),
                     "creationTimestamp": None}, "spec": {"containers": None}, "status": {}}  # fmt: skip
            self._history.append((self._version, "BOOKMARK", empty))
            self.changed.notify_all()

    def _tell(self, kind: str, pod: Json) -> None:
        with self.changed:
            self._version += 1
            pod["metadata"]["resourceVersion"] = str(self._version)
            told = {"kind": "Pod", "apiVersion": "v1", **copy.deepcopy(pod)}
            self._history.append((self._version, kind, told))
            self.changed.notify_all()

    # ------------------------------------------------ what is answered

    def list(self, found: list[Json], kind: str, query: dict[str, str]) -> Json:
        if "continue" in query:  # further pages are of the same moment as the first
            version, at = map(int, query["continue"].split(":"))
            found = self._lists[version]
        else:
            version, at = self._version, 0
            self._lists[version] = found = copy.deepcopy(found)
        page = found[at : at + min(self.page, int(query.get("limit", "500")))]
        metadata: Json = {"resourceVersion": str(version)}
        if at + len(page) < len(found):
            left = len(found) - at - len(page)
            metadata |= {"continue": f"{version}:{at + len(page)}", "remainingItemCount": left}
        return {"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": page}

    def watched(self, namespace: str, version: int, query: dict[str, str]) -> Iterator[Json]:
        if version < self._oldest:
            yield {"type": "ERROR", "object": status(410, f"too old resource version: {version} ({self._oldest})")}
            return
        breaks = self._breaks
        while True:
            with self.changed:
                new = [each for each in self._history if each[0] > version]
                if not new and breaks == self._breaks:
                    self.changed.wait(0.2)
                if breaks != self._breaks:
                    raise ConnectionAbortedError
            for number, kind, told in new:
                version = number
                if kind == "BOOKMARK" or (fits(told, query) and namespace in ("", told["metadata"]["namespace"])):
                    yield {"type": kind, "object": told}
            yield {}


def fits(pod: Json, query: dict[str, str]) -> bool:
    terms = [term.partition("=") for term in query.get("labelSelector", "").split(",") if term]
    return all((pod["metadata"].get("labels") or {}).get(name) == value for name, _, value in terms)


def status(code: int, message: str) -> Json:
    reasons = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 410: "Expired",
               500: "InternalError"}  # fmt: skip
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reasons[code], "code": code}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: ApiServer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        words = parts.path.strip("/").split("/")[2:]  # behind api/v1
        namespace = words[1] if words[0] == "namespaces" else ""
        resource = "/".join(words[2:3] + words[4:] if namespace else words)
        verb = "watch" if query.get("watch") == "true" else "get" if len(words) > 3 else "list"
        self.api.asked.append(Asked(verb, "pods/log" if resource == "pods/log" else resource, namespace))
        if self.api.down:
            self.close_connection = True
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(status(401, "Unauthorized"))
        elif namespace in self.api.refused:
            user = "system:serviceaccount:torchtriage:torchtriage-watcher"
            self._answer(status(403, f'{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}" '
                                     f'in API group "" in the namespace "{namespace}"'))  # fmt: skip
        elif verb == "watch":
            self._watch(namespace, query)
        elif resource == "pods":
            with self.api.changed:
                pods = [pod for (space, _), pod in sorted(self.api.pods.items()) if namespace in ("", space)]
                told = self.api.list([pod for pod in pods if fits(pod, query)], "PodList", query)
            self._answer(told)
        elif resource == "events":
            events = [event for event in self.api.events if event["metadata"]["namespace"] == namespace]
            self._answer(self.api.list(events, "EventList", query))
        else:
            self._log(namespace, words[3], query)

    def _log(self, namespace: str, name: str, query: dict[str, str]) -> None:
        pod = self.api.pods.get((namespace, name))
        if pod is None:
            return self._answer(status(404, f'pods "{name}" not found'))
        statuses = [*pod["status"].get("containerStatuses", []), *pod["status"].get("initContainerStatuses", [])]
        found = next((each for each in statuses if each["name"] == query["container"]), None)
        start = found["restartCount"] if found else 0
        if query.get("previous") == "true" and "waiting" not in (found or {}).get("state", {}):
            start -= 1
        text = self.api.logs.get((pod["metadata"]["uid"], query["container"], start))
        if text is None:
            which = "previous terminated container" if query.get("previous") == "true" else "container"
            return self._answer(status(400, f'{which} "{query["container"]}" in pod "{name}" not found'))
        lines = text.splitlines(keepends=True)
        stamped = [f"2026-11-20T09:0{n // 60 % 10}:{n % 60:02}.{n:09}Z {line}" for n, line in enumerate(lines)]
        if query.get("timestamps") == "true":
            lines = [line if line.startswith("2026-") else stamp for line, stamp in zip(lines, stamped, strict=True)]
        self._send(200, "text/plain", "".join(lines).encode())

    def _watch(self, namespace: str, query: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for event in self.api.watched(namespace, int(query["resourceVersion"]), query):
                if event:
                    self._chunk(json.dumps(event).encode() + b"\n")
                self.wfile.flush()
                if self.server.ended.is_set():  # type: ignore[attr-defined]
                    break
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        for piece in (data[:7], data[7:]):  # a line can come in several
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()

    def _answer(self, told: Json) -> None:
        self._send(told.get("code", 200), "application/json", json.dumps(told).encode())

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[ApiServer]:
    """Gives an empty cluster whose server listens while this is open."""
    api = ApiServer()
    handler = type("OneHandler", (Handler,), {"api": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.ended = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.ended.set()  # type: ignore[attr-defined]
        api.interrupt()
        server.shutdown()
        server.server_close()
        thread.join()
