"""Answers the probes of the pod and Prometheus: /healthz, /readyz and /metrics, on a port of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from torchtriage.watcher.metrics import Counters

Asked = Callable[[], bool]


@contextmanager
def answering(host: str, port: int, alive: Asked, ready: Asked, counters: Counters, tick: float = 0.5) -> Iterator[int]:
    """Serves these pages inside a `with` block, whose end takes up to `tick` seconds. Yields the port; port 0 picks a
    free one. Raises OSError if the port is in use."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            states = {"/healthz": alive, "/readyz": ready}
            if self.path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(counters.registry))
            elif self.path in states:
                good = states[self.path]()
                self._answer(200 if good else 503, "text/plain", b"ok\n" if good else b"not yet\n")
            else:
                self._answer(404, "text/plain", b"/healthz, /readyz or /metrics\n")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing, because probes come every few seconds."""

    with ThreadingHTTPServer((host, port), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(tick,), name="health", daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
