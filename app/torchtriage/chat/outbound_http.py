"""Calls other services over HTTP. Calls into our own network are blocked by default.

A name is resolved once, all its addresses must be public, and the connection goes to one of them; TLS and `Host` still
use the name. There are no proxies, no redirects unless requested, and limits on time and size.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from http import HTTPStatus
from typing import Any

import httpcore2
import httpx2

from torchtriage.chat.delivery_errors import Undelivered, retry_after
from torchtriage.chat.ssrf_guard import GuardedSocket, Resolve, is_public, resolve
from torchtriage.domain.byte_sizes import limit_text
from torchtriage.lazy_regex import lazy_regex

_SECONDS = 15
_LIFTED = "TRIAGE_ALLOW_PRIVATE_CALLS lifts that"
_ERRNO = lazy_regex(r"^\[Errno -?\d+\] ")  # the words after it say the same
_MAX_BYTES = 1 << 20  # maximum bytes read of an answer
_REDIRECTS = {301, 302, 303, 307, 308}
_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS, *range(500, 600)})


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call. The names of the headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """Returns the JSON object in the body, or an empty one if there is none."""
        found = self._read()
        return found if isinstance(found, dict) else {}

    def objects(self) -> list[dict[str, Any]]:
        """Returns the objects of the JSON list in the body; none if it is not a list."""
        found = self._read()
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def _read(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class Outgoing:
    """Makes calls. `private` also allows private networks and `http://`.

    All methods raise Undelivered. Its message names the host and never the whole URL, which may contain a secret.
    """

    def __init__(self, private: bool = False, resolve: Resolve = resolve, tls: ssl.SSLContext | None = None) -> None:
        self._private = private
        self._resolve = resolve
        self._tls = tls

    def post(
        self, url: str, content: bytes, headers: Mapping[str, str] | None = None, seconds: float = _SECONDS
    ) -> Answer:
        """Sends a request and returns the answer, whatever its status."""
        return self._answer("POST", url, headers or {}, content, seconds)

    def post_json(self, url: str, payload: Any, headers: Mapping[str, str] | None = None) -> Answer:
        return self.call("POST", url, payload, headers)

    def call(self, method: str, url: str, payload: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Calls a JSON API and returns the answer, whatever its status. Without a payload the body is empty."""
        if payload is None:
            return self._answer(method, url, headers or {}, b"", _SECONDS)
        content = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        kind = {"Content-Type": "application/json; charset=utf-8"}
        return self._answer(method, url, {**kind, **(headers or {})}, content, _SECONDS)

    def _answer(self, method: str, url: str, headers: Mapping[str, str], content: bytes, seconds: float) -> Answer:
        with self._open(method, url, headers, content, seconds) as (response, found):
            return Answer(response.status, found, b"".join(_read_limited(response, _MAX_BYTES)))

    @contextmanager
    def download(
        self, url: str, headers: Mapping[str, str], most: int, seconds: float, redirects: int = 0
    ) -> Iterator[Iterator[bytes]]:
        """Yields the bytes of a file as a stream, at most `most`. Follows up to `redirects` redirects, each checked
        like a first URL. Sends `headers` only to the first host."""
        until = time.monotonic() + seconds
        for left in range(redirects, -1, -1):
            with self._open("GET", url, headers, b"", until - time.monotonic()) as (response, found):
                onward = _onward(url, response.status, found)
                if onward is None or not redirects:
                    answer = Answer(response.status, found, b"")
                    refuse(answer, httpx2.URL(url).host)
                    if found.get("content-type", "").startswith("text/html"):
                        raise Undelivered("the file's host returned a login page instead of the file")
                    yield self._counted(response, most)
                    return
                if not left:
                    raise Undelivered(f"more than {redirects} redirects")
            if httpx2.URL(onward).host != httpx2.URL(url).host:
                headers = {}
            url = onward

    @contextmanager
    def _open(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes, seconds: float
    ) -> Iterator[tuple[httpcore2.Response, dict[str, str]]]:
        parts = _parts(url)
        if parts.scheme != "https" and not self._private:
            raise Undelivered(f"{parts.host}: only https:// URLs are allowed; {_LIFTED}")
        target = httpcore2.URL(
            scheme=parts.raw_scheme, host=parts.raw_host, port=parts.port, target=parts.raw_path or b"/"
        )
        backend = GuardedSocket(self._addresses, time.monotonic() + seconds)
        given = [("User-Agent", "torchtriage"), *headers.items()]
        with _delivery_errors(parts.host), httpcore2.ConnectionPool(self._tls, network_backend=backend) as pool:
            extensions = {"timeout": {"connect": seconds, "read": seconds, "write": seconds}}
            with pool.stream(method, target, headers=given, content=content, extensions=extensions) as response:
                found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
                yield response, found

    def _counted(self, response: httpcore2.Response, most: int) -> Iterator[bytes]:
        size = 0
        for chunk in response.iter_stream():
            size += len(chunk)
            if size > most:
                raise Undelivered(f"the file is larger than the limit of {limit_text(most)}")
            yield chunk

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise Undelivered(f"cannot resolve {host}: {error}", passing=True) from None
        if not self._private and not all(map(is_public, found)):
            raise Undelivered(f"{host} resolves to a non-public address, which is blocked; {_LIFTED}")
        return found


def refuse(answer: Answer, who: str, why: str = "", passing: Collection[int] = _PASSING) -> None:
    """Raises Undelivered if the status is not 2xx. `why` is the error message of the service, if it is not the whole
    body. Statuses in `passing` are temporary."""
    if answer.status // 100 == 2:
        return
    reason = why[:200] or _body_start(answer)
    printable = "".join(char for char in reason if char.isprintable())
    later = answer.status in passing
    wait = retry_after(answer.headers.get("retry-after", "")) if later else None
    raise Undelivered(f"{who} answered {answer.status}: {printable or 'nothing'}", later, wait)


def _body_start(answer: Answer) -> str:
    """Returns the beginning of the body, or the title of an HTML page."""
    text = answer.body[:4096].decode("utf-8", "replace")
    if text.lstrip()[:1] != "<":
        return text[:200]
    title = text.partition("<title>")[2].partition("</title>")[0].strip()
    return unescape(title)[:200] or "an HTML page"


def _onward(url: str, status: int, headers: Mapping[str, str]) -> str | None:
    """Returns the URL to which a redirect leads, or None if it is not a redirect. Raises Undelivered."""
    if status not in _REDIRECTS or not headers.get("location"):
        return None
    try:
        return str(httpx2.URL(url).join(headers["location"]))
    except (httpx2.InvalidURL, ValueError):
        raise Undelivered("the redirect leads to an invalid URL") from None


def _parts(url: str) -> httpx2.URL:
    try:
        parts = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        raise Undelivered("invalid URL") from None
    if parts.scheme not in ("http", "https") or not parts.host:
        raise Undelivered("invalid URL: it must begin with https://")
    return parts


def _read_limited(response: httpcore2.Response, most: int) -> Iterator[bytes]:
    left = most
    for chunk in response.iter_stream():
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            return


@contextmanager
def _delivery_errors(host: str) -> Iterator[None]:
    try:
        yield
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        reason = _ERRNO.sub("", str(error).strip().split("\n")[0]) or type(error).__name__
        raise Undelivered(f"{host} can't be reached: {reason}", passing=True) from error
    except httpcore2.UnsupportedProtocol as error:
        raise Undelivered(f"the request to {host} failed: {error}") from error
