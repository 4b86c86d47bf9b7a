"""What a piece of a log is remembered by, so that later looks can leave it out: bytes in, a few bits out.

Whether any line has the look of an error, and whose labels stand in it. A bit too many costs time; none is missing.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import NamedTuple

import hyperscan

# What lines say that tell of a failure; anchors of the same kind as the engine's, only wider.
ERRORS = (
    r"Traceback \(most recent call last\)|\b[A-Za-z_.]*(?:Error|Exception|Interrupt)\b\s?[:(]"
    r"|(?:^|\W|\x1b\[[\d;]{0,20}m)(?:FATAL|CRITICAL|ERROR)\W|\[(?:error|fatal)\]|\bSegmentation fault|\bcore dumped"
    r"|\bSIG(?:KILL|SEGV|ABRT|BUS|FPE)\b|\bKilled\b|\bNCCL WARN\b"
    r"|\bXid\b|\boom-kill|[Oo]ut of memory|\bWatchdog caught\b|\bpanic\b|\bfailed \(exitcode|srun: error"
)
_KINDS = 100  # ranks are told apart by their last two digits
# Spelled out, as any case would take three times as long; {} is the number.
OF_RANK = r"(?:[rR](?:ank|ANK)[ =:_-]{{0,3}}|\[(?:default|trainer|worker|role_\w+)){}\b"
_BRACKETS = r"\]<std(?:out|err)>|:\d\] |:\d\d\] "  # of mpirun, horovodrun, `[host:3] `: whose, is not looked at
_FLAGS = hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_SINGLEMATCH
_HEAD = 1  # byte of flags before the bits of the ranks
SIZE = _HEAD + (_KINDS + 7) // 8  # bytes


class Landmarks(NamedTuple):
    """`error`: a line has the look of one; `brackets`: a line may be of any rank; `ranks`: a bit for each two digits."""

    error: bool = False
    brackets: bool = False
    ranks: int = 0

    def may_hold(self, rank: int) -> bool:
        """-> whether a line of the rank can be in the piece; only for labels that name ranks (`rank3`, `[default3]`)."""
        return self.brackets or bool(self.ranks >> rank % _KINDS & 1)

    def __or__(self, other: Landmarks) -> Landmarks:
        return Landmarks(self.error or other.error, self.brackets or other.brackets, self.ranks | other.ranks)

    def dump(self) -> bytes:
        """-> SIZE bytes."""
        return bytes([self.error | self.brackets << 1]) + self.ranks.to_bytes(SIZE - _HEAD, "little")


def load(stored: bytes) -> Landmarks:
    """-> what `dump` made the bytes of."""
    return Landmarks(bool(stored[0] & 1), bool(stored[0] & 2), int.from_bytes(stored[_HEAD:SIZE], "little"))


def look(data: bytes) -> Landmarks:
    """-> what stands in a piece of a log; each pattern is reported once, however often it is there."""
    found: list[int] = []

    def on_match(index: int, start: int, end: int, flags: int, context: object) -> None:
        found.append(index)

    database = _patterns()
    if not hasattr(_threads, "scratch"):
        _threads.scratch = hyperscan.Scratch(database)
    database.scan(data, match_event_handler=on_match, scratch=_threads.scratch)
    ranks = sum(1 << index for index in set(found) if index < _KINDS)
    return Landmarks(_KINDS in found, _KINDS + 1 in found, ranks)


_threads = threading.local()


@cache
def _patterns() -> hyperscan.Database:
    ends = [rf"\d*{digits}" if digits > 9 else rf"(?:\d*0)?{digits}" for digits in range(_KINDS)]
    expressions = [pattern.encode() for pattern in (*map(OF_RANK.format, ends), ERRORS, _BRACKETS)]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    ids = list(range(len(expressions)))
    database.compile(expressions=expressions, ids=ids, flags=[_FLAGS] * len(ids))
    return database
