"""Features of a block of a stored log, by which a search can skip it: bytes in, a few bits out.

Whether a line looks like an error, and which ranks' labels are in it. A bit too many costs time; none is missing.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import NamedTuple

import hyperscan

# What lines of a failure hold; anchors of the same kind as the engine's, only wider.
ERRORS = (
    r"Traceback \(most recent call last\)|\b[A-Za-z_.]*(?:Error|Exception|Interrupt)\b\s?[:(]"
    r"|(?:^|\W|\x1b\[[\d;]{0,20}m)(?:FATAL|CRITICAL|ERROR)\W|\[(?:error|fatal)\]|\bSegmentation fault|\bcore dumped"
    r"|\bSIG(?:KILL|SEGV|ABRT|BUS|FPE)\b|\bKilled\b|\bNCCL WARN\b"
    r"|\bXid\b|\boom-kill|[Oo]ut of memory|\bWatchdog caught\b|\bpanic\b|\bfailed \(exitcode|srun: error"
)
_RANK_BITS = 100  # ranks differ by their last two digits
# Spelled out, as any case would take three times as long; {} is the number.
OF_RANK = r"(?:[rR](?:ank|ANK)[ =:_-]{{0,3}}|\[(?:default|trainer|worker|role_\w+)){}\b"
_BRACKETS = r"\]<std(?:out|err)>|:\d\] |:\d\d\] "  # of mpirun, horovodrun, `[host:3] `: of which rank is left open
_FLAGS = hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_SINGLEMATCH
_HEAD = 1  # byte of flags before the bits of the ranks
SIZE = _HEAD + (_RANK_BITS + 7) // 8  # bytes


class BlockFeatures(NamedTuple):
    """`error`: a line looks like one; `brackets`: a line may be of any rank; `ranks`: a bit for each two digits."""

    error: bool = False
    brackets: bool = False
    ranks: int = 0

    def may_hold(self, rank: int) -> bool:
        """-> whether a line of the rank can be in the block; only for labels that name ranks (`rank3`, `[default3]`)."""
        return self.brackets or bool(self.ranks >> rank % _RANK_BITS & 1)

    def __or__(self, other: BlockFeatures) -> BlockFeatures:
        return BlockFeatures(self.error or other.error, self.brackets or other.brackets, self.ranks | other.ranks)

    def dump(self) -> bytes:
        """-> SIZE bytes."""
        return bytes([self.error | self.brackets << 1]) + self.ranks.to_bytes(SIZE - _HEAD, "little")


def load(stored: bytes) -> BlockFeatures:
    """-> what `dump` made the bytes of."""
    return BlockFeatures(bool(stored[0] & 1), bool(stored[0] & 2), int.from_bytes(stored[_HEAD:SIZE], "little"))


def features_of(data: bytes) -> BlockFeatures:
    """-> the features of a block; each pattern is reported once, however often it is there."""
    found: list[int] = []

    def on_match(index: int, start: int, end: int, flags: int, context: object) -> None:
        found.append(index)

    database = _patterns()
    if not hasattr(_threads, "scratch"):
        _threads.scratch = hyperscan.Scratch(database)
    database.scan(data, match_event_handler=on_match, scratch=_threads.scratch)
    ranks = sum(1 << index for index in set(found) if index < _RANK_BITS)
    return BlockFeatures(_RANK_BITS in found, _RANK_BITS + 1 in found, ranks)


_threads = threading.local()


@cache
def _patterns() -> hyperscan.Database:
    ends = [rf"\d*{digits}" if digits > 9 else rf"(?:\d*0)?{digits}" for digits in range(_RANK_BITS)]
    expressions = [pattern.encode() for pattern in (*map(OF_RANK.format, ends), ERRORS, _BRACKETS)]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    ids = list(range(len(expressions)))
    database.compile(expressions=expressions, ids=ids, flags=[_FLAGS] * len(ids))
    return database
