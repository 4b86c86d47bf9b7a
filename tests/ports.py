"""A port of this machine for a program that can only be told a number."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_port() -> Iterator[int]:
    """Gives a port that nobody listens on. The system gives it to nobody else meanwhile; who asks for this very one, as
    a server that sets SO_REUSEADDR, may listen there."""
    with socket.socket() as keeping:
        keeping.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeping.bind(("127.0.0.1", 0))
        yield keeping.getsockname()[1]
