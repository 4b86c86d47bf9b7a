"""Compresses pages and static files with gzip if the browser accepts that."""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response

_MIN_BYTES = 1000  # bytes; less fits a packet or two as it is
_LEVEL = 5  # beyond it a page takes twice as long for a hundredth less


def takes_gzip(headers: Headers) -> bool:
    """Returns whether the client accepts gzip. `gzip;q=0` means that it does not."""
    for part in headers.get("accept-encoding", "").split(","):
        name, _, quality = part.strip().partition(";")
        if name.strip().lower() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def small_page(answer: Response, headers: Headers) -> Response:
    """Returns the answer, with its body compressed if the client accepts that and the body is long enough. Sets the
    Vary header."""
    body = bytes(answer.body)
    if len(body) >= _MIN_BYTES:
        answer.headers.add_vary_header("Accept-Encoding")
        if takes_gzip(headers):
            answer.body = gzip.compress(body, _LEVEL, mtime=0)
            answer.headers["Content-Encoding"] = "gzip"
            answer.headers["Content-Length"] = str(len(answer.body))
    return answer


def small_file(answer: Response, path: Path, headers: Headers) -> Response:
    """Returns the answer for a static file, compressed if the client accepts that and the file is long enough."""
    if answer.status_code != 200 or not takes_gzip(headers) or path.stat().st_size < _MIN_BYTES:
        return answer
    content = _compressed(path, path.stat().st_mtime_ns)
    kept = {name: answer.headers[name] for name in ("content-type", "cache-control") if name in answer.headers}
    return Response(content, headers=kept | {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})


@lru_cache(maxsize=32)
def _compressed(path: Path, changed: int) -> bytes:
    """Returns the compressed file. `changed` is its modification time, which makes a changed file a new cache entry."""
    return gzip.compress(path.read_bytes(), 9, mtime=0)
