"""Connects to other services only at checked addresses. This prevents server-side request forgery (SSRF).

A name is resolved, its addresses are checked, and the connection goes to one of them. TLS and HTTP still use the name.
A name that resolves into our own network is refused.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

import httpcore2

# Python calls these networks global. They reach private IPv4 addresses through IPv6, or a relay in our own network.
_TUNNELS = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.88.99.0/24")))

Resolve = Callable[[str, int], list[str]]


def resolve(host: str, port: int) -> list[str]:
    """Returns the IP addresses of a name, best first. Raises OSError."""
    return list(dict.fromkeys(str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))


def is_public(address: str) -> bool:
    """Returns whether an IP address is on the public internet and does not tunnel to one that is not."""
    known = ip_address(address.partition("%")[0])
    if isinstance(known, IPv6Address) and known.ipv4_mapped:
        known = known.ipv4_mapped
    inside = any(known.version == tunnel.version and known in tunnel for tunnel in _TUNNELS)
    return known.is_global and not known.is_multicast and not inside


class GuardedSocket(httpcore2.NetworkBackend):
    """Connects only to checked addresses, and ends every operation at the deadline."""

    def __init__(self, addresses: Resolve, deadline: float) -> None:
        self._backend = httpcore2.SyncBackend()
        self._addresses = addresses
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        problem: Exception = httpcore2.ConnectError("it has no address")
        for address in self._addresses(host, port):
            try:
                left = _left(self._deadline, timeout)
                stream = self._backend.connect_tcp(address, port, left, local_address, socket_options)
                return _Timed(stream, self._deadline)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem


class _Timed(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._deadline, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline, timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Timed(
            self._stream.start_tls(ssl_context, server_hostname, _left(self._deadline, timeout)), self._deadline
        )

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float, timeout: float | None) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("it took too long")
    return left if timeout is None else min(left, timeout)
