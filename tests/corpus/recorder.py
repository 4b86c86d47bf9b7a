"""Writes down what several processes print, in the order in which it comes, in the form of one log."""

from __future__ import annotations

import datetime
import json
import os
import selectors
import subprocess
import time
from dataclasses import dataclass
from typing import IO


@dataclass
class _Stream:
    """One pipe: its label, its name, and the part of a line that has not ended yet."""

    label: str
    name: str
    rest: bytes = b""


class Recorder:
    """Follows processes until they end. `form` is "" (as it comes), "ts" (a time before each line) or "docker"."""

    def __init__(self, form: str = "") -> None:
        self._form = form
        self._selector = selectors.DefaultSelector()
        self._parts: list[bytes] = []
        self._seen = b""

    def follow(self, child: subprocess.Popen[bytes], label: str = "") -> None:
        """Takes in both pipes of `child`; `label` goes before each line."""
        for pipe, name in ((child.stdout, "stdout"), (child.stderr, "stderr")):
            if pipe is not None:
                self._selector.register(pipe, selectors.EVENT_READ, _Stream(label, name))

    def wait_for(self, words: str, seconds: float) -> None:
        """Returns when `words` have been printed; raises TimeoutError where they have not in time."""
        if not self._pump(seconds, words.encode()):
            raise TimeoutError(f"{words!r} was not printed")

    def finish(self, seconds: float) -> None:
        """Returns when all pipes are closed; raises TimeoutError where they are not in time."""
        if not self._pump(seconds, None):
            raise TimeoutError(f"still running after {seconds} s")

    def text(self) -> bytes:
        """-> the log so far."""
        return b"".join(self._parts)

    def _pump(self, seconds: float, words: bytes | None) -> bool:
        end = time.monotonic() + seconds
        while self._selector.get_map():
            for key, _ in self._selector.select(0.5):
                pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]
                self._take(pipe, os.read(pipe.fileno(), 1 << 16), key.data)
            if words is not None and words in self._seen:
                return True
            if time.monotonic() > end:
                return False
        return words is None

    def _take(self, pipe: IO[bytes], data: bytes, stream: _Stream) -> None:
        self._seen = self._seen[-4000:] + data
        if not data:
            self._selector.unregister(pipe)
            pipe.close()
        if not self._form and not stream.label:
            self._parts.append(data)
            return
        *whole, stream.rest = (stream.rest + data).split(b"\n")
        if not data and stream.rest:
            whole, stream.rest = [stream.rest], b""
        self._parts += [self._wrapped(line, stream) for line in whole]

    def _wrapped(self, line: bytes, stream: _Stream) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        if self._form == "docker":
            text = line.decode("utf-8", "replace") + "\n"
            entry = {"log": text, "stream": stream.name, "time": now.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")}
            return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode() if self._form == "ts" else b""
        return stream.label.encode() + stamp + line + b"\n"
