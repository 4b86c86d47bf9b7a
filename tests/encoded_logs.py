"""Logs that were encoded for transport, shown in columns or panes, or put into two forms. See log_wrappings."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from urllib.parse import quote, quote_plus

from tests.copied_logs import COPIED
from tests.log_wrappings import WRAPPINGS, Wrapped, Wrapping, by_line, stamp, when
from tests.surrounded_lines import SURROUNDED


def _encoded(form: Callable[[bytes], bytes]) -> Wrapping:
    return lambda lines: (form(("\n".join(lines) + "\n").encode()), [1] * len(lines))


def _service(text: str) -> str:
    for char in "|'[]":
        text = text.replace(char, f"|{char}")
    return text


def _folded(line: str, room: int) -> list[str]:
    """Returns the pieces into which rich folds a line: between words, or inside a word longer than the column."""
    pieces = [""]
    for at, word in enumerate(line.split(" ")):
        if at and len(pieces[-1]) + 1 + len(word) > room and pieces[-1].strip():
            pieces.append(word)
        else:
            pieces[-1] += f" {word}" if at else word
        while len(pieces[-1]) > room:
            pieces[-1:] = [pieces[-1][:room], pieces[-1][room:]]
    return pieces


def columns(width: int, place: str) -> Wrapping:
    """Returns a wrapping into rich's columns: time, level, message, and the code location at the right edge."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        written: list[str] = []
        numbers: list[int] = []
        last = ""
        for at, line in enumerate(lines):
            numbers.append(len(written) + 1)
            time = f"[{when(at):%m/%d/%y %H:%M:%S}]"
            head = f"{time if time != last else ' ' * len(time)} INFO     "
            room = width - len(head) - len(place) - bool(place)
            for piece in _folded(line, room):
                right = place if len(written) + 1 == numbers[-1] else ""
                written.append(f"{head}{piece:{room}}" + (f" {right:{len(place)}}" if place else ""))
                head = " " * len(head)
            last = time
        return ("\n".join(written) + "\n").encode(), numbers

    return wrap


def _beside(width: int, left: bool) -> Wrapping:
    """Returns a wrapping into one of two panes; the other pane has other text."""
    others = ("Every 2.0s: nvidia-smi", "", "|  0  NVIDIA H100    On   |", "|  N/A 34C  P0 70W / 700W |")

    def wrap(lines: Sequence[str]) -> Wrapped:
        written: list[str] = []
        numbers: list[int] = []
        for line in lines:
            numbers.append(len(written) + 1)
            for at in range(0, max(len(line), 1), width):
                other = others[len(written) % len(others)]
                piece = line[at : at + width]
                written.append(f"{other:30}│{piece}" if left else f"{piece:{width}}│{other}")
        return ("\n".join(written) + "\n").encode(), numbers

    return wrap


def nested(inner: Wrapping, outer: Wrapping) -> Wrapping:
    """Returns a wrapping that applies `inner` and then `outer`."""

    def wrap(lines: Sequence[str]) -> Wrapped:
        content, below = inner(lines)
        whole, above = outer(content.decode().removesuffix("\n").split("\n"))
        return whole, [above[number - 1] for number in below]

    return wrap


ENVELOPES: dict[str, Wrapping] = {
    "base64": _encoded(base64.encodebytes),
    "base64 in one line": _encoded(base64.b64encode),
    "base64 of gzip": _encoded(lambda text: base64.encodebytes(gzip.compress(text))),
    "base64 between marks": _encoded(lambda text: b"-----BEGIN LOG-----\n" + base64.encodebytes(text) + b"-----END LOG-----\n"),
    "base64 in an API's answer": _encoded(lambda text: json.dumps({"encoding": "base64", "content": base64.b64encode(text).decode()}).encode()),
    "a URL of data": _encoded(lambda text: b"data:text/plain;charset=utf-8," + quote(text).encode()),
    "a form's field": _encoded(lambda text: f"job=12&log={quote_plus(text)}&state=FAILED".encode()),
    "TeamCity's messages": by_line(lambda at, line: f"##teamcity[message text='{_service(line)}' timestamp='{stamp(at)[:23]}+0000']"),
    "rich's columns": columns(120, "launch.py:31"),
    "rich's columns without a place": columns(100, ""),
    "the left one of two panes": _beside(100, left=False),
    "the right one of two panes": _beside(110, left=True),
    "a terminal's pane between bars": by_line(lambda _, line: f"│ {line:240} │"),
    "Ray, repeated": by_line(lambda at, line: f"(RayTrainWorker pid=410, ip=10.0.0.9) {line} [repeated {at + 2}x across cluster]"),
    "Drone": by_line(lambda at, line: json.dumps({"pos": at, "out": line + "\n", "time": at})),
    "a build of BuildKit": by_line(lambda at, line: f"#12 {at * 0.137:.3f} {line}"),
    "logrus": by_line(lambda at, line: f"INFO[{at:04}] {line}"),
    "fields behind each line": by_line(lambda at, line: f'[{when(at):%Y-%m-%d, %H:%M:%S} UTC] INFO - {line}: chan="stdout": source="task"'),
    "rich's columns in docker's records": nested(columns(120, "launch.py:31"), WRAPPINGS["docker"]),
    "rich's columns behind a pod and a time": nested(columns(140, "launch.py:31"), WRAPPINGS["kubectl --prefix --timestamps"]),
    "cut at 120 behind a container": nested(SURROUNDED["cut at 120"], WRAPPINGS["CRI"]),
    "docker's records in a notebook": nested(WRAPPINGS["docker"], COPIED["a notebook"]),
    "a notebook in a JSON string": nested(COPIED["a notebook"], COPIED["a JSON string"]),
    "CRI in a journal": nested(WRAPPINGS["CRI"], WRAPPINGS["journalctl -o json"]),
    "a journal in docker's records in an API's answer": nested(nested(WRAPPINGS["journalctl -o json"], WRAPPINGS["docker"]), COPIED["an API's answer"]),
    "docker compose before records": nested(WRAPPINGS["a structured logger"], WRAPPINGS["docker compose"]),
    "records behind a label that no list knows": nested(WRAPPINGS["Vector"], by_line(lambda at, line: f"info  {when(at):%d/%m/%Y %H:%M:%S}  {line}")),
}  # fmt: skip
