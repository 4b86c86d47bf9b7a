"""Converts pickled dumps of PyTorch's flight recorder to text: JSON with one entry per line.

A pickle is a program. Before it is loaded, every opcode is checked. Only opcodes that create plain values are accepted,
so no class is called and no table is larger than the file. A rejected dump becomes one line that says why.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.whole_files import NotRead, whole

UNREAD = "unread"  # key of the line that replaces a rejected dump
MAX_BYTES = 32 << 20  # bytes of a dump: 2,000 entries with their stacks take 2 MB
HEAD = 64 << 10  # bytes of a pickle that show whether it is a dump
_MAX_CONTAINERS = 1_000_000  # a list or dict takes 64 bytes of memory, and one byte of the file
_MAX_VALUES = 4_000_000  # values that are written; a pickle can contain the same list again and again
_MAX_FRAMES = 48  # frames of a stack, from the innermost
_WITH_STACK = 100  # completed calls, from the last, whose stacks are written; as text, stacks are most of a dump
_MAX_DEPTH = 6
_WORDS = (
    b"entries", b"pg_config", b"pg_status", b"nccl_version", b"comm_lib_version", b"profiling_name", b"input_sizes",
    b"collective_seq_id", b"seq_id", b"process_group", b"time_created_ns",
)  # fmt: skip
_MIN_WORDS = 3
_BEGINNINGS = tuple(b"\x80" + bytes((protocol,)) for protocol in range(2, 6))
# Opcodes of a fixed length. The index of LONG_BINPUT (r) must be below a million, because the memo is a table of that
# length.
_PLAIN = lazy_regex(
    rb"(?s)(?:[()\]}Naesut\x85-\x89\x94]|[Khq].|M..|[Jj]....|G.{8}|r..[\x00-\x0f]\x00|\x95.{8}"
    + b"".join(rb"|\x8a" + bytes((size,)).replace(b"\\", b"\\\\") + rb".{%d}" % size for size in range(9))
    + rb")*+"
)
_STRINGS = {ord("X"): 4, 0x8C: 1, 0x8D: 8}  # opcodes of strings, with the number of bytes of their length
_STOP = ord(".")


class _PlainValues(pickle.Unpickler):
    """An unpickler that creates no object of any class. The opcodes were already checked; this is a second
    protection."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise NotRead(f"it refers to the class {module_name}.{global_name}")

    def persistent_load(self, pid: Any, /) -> Any:
        raise NotRead("it refers to objects outside the file")


def is_pickled_dump(head: bytes) -> bool:
    """Returns whether a file with this beginning is a pickled dump."""
    return head[:2] in _BEGINNINGS and sum(word in head for word in _WORDS) >= _MIN_WORDS


def is_pickle(head: bytes) -> bool:
    """Returns whether a file with this beginning is a pickle. Text never begins so: in UTF-8, 0x80 is not a first byte."""
    return head[:2] in _BEGINNINGS


def as_text(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the dump as lines of JSON: first the process groups, then one line per entry."""
    try:
        dump = _unpickled(whole(chunks, MAX_BYTES))
        yield from _lines(dump)
    except NotRead as reason:
        yield json.dumps({"flight_recorder": UNREAD, "reason": str(reason)}).encode() + b"\n"


def _unpickled(data: bytes) -> Any:
    _check(data)
    try:
        return _PlainValues(io.BytesIO(data)).load()
    except NotRead:
        raise
    except (pickle.UnpicklingError, ArithmeticError, EOFError, LookupError, MemoryError, RecursionError, TypeError,
            ValueError) as error:  # fmt: skip
        raise NotRead(f"broken pickle: {error}") from error


def _check(data: bytes) -> None:
    """Raises NotRead if the pickle has more than plain values."""
    if sum(data.count(opcode) for opcode in (b"]", b"}", b"\x85")) > _MAX_CONTAINERS:
        raise NotRead(f"more than {_MAX_CONTAINERS:,} lists")
    at, size = 2, len(data)
    while at < size:
        hit = _PLAIN.match(data, at)
        at = hit.end() if hit else at
        if at >= size or data[at] == _STOP:
            return
        width = _STRINGS.get(data[at])
        if width is None:
            raise NotRead(f"more than plain values (opcode {data[at : at + 1]!r})")
        at += 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "little")


def _lines(dump: Any) -> Iterator[bytes]:
    if isinstance(dump, list):
        dump = {"entries": dump}  # torch 2.1 dumped only the entries
    if not isinstance(dump, dict) or not isinstance(dump.get("entries", []), list):
        raise NotRead("not a flight-recorder dump")
    left = [_MAX_VALUES]
    header = {key: value for key, value in dump.items() if key != "entries" and isinstance(key, str)}
    head = _json(_json_copy(header, left))
    yield head[:-1] + (b", " if header else b"") + b'"entries": [\n'
    separator = b""
    entries = [entry for entry in dump.get("entries", ()) if isinstance(entry, dict)]
    for at, entry in enumerate(entries):
        frames = entry.get("frames")
        shown = {key: value for key, value in entry.items() if key != "frames"}
        ended = bool(entry.get("retired")) or entry.get("state") == "completed"
        if isinstance(frames, list) and (not ended or at >= len(entries) - _WITH_STACK):
            shown["frames"] = frames[:_MAX_FRAMES]  # last, because they are long
        yield separator + _json(_json_copy(shown, left))
        separator = b",\n"
    yield b"\n]}\n"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _json_copy(value: Any, left: list[int], depth: int = 0) -> Any:
    """Returns the value for JSON. Values that are nested too deep or have no plain type are left out. `left` is the
    number of values that may still be written."""
    left[0] -= 1
    if left[0] < 0:
        raise NotRead(f"more than {_MAX_VALUES:,} values")
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        return {
            str(key): _json_copy(inner, left, depth + 1) for key, inner in value.items() if isinstance(key, str | int)
        }
    if isinstance(value, list | tuple) and depth < _MAX_DEPTH:
        return [_json_copy(inner, left, depth + 1) for inner in value]
    return value if isinstance(value, str | int | float | bool) else None
