"""Computes features of a block of a stored log, so that a search can skip blocks.

A feature says whether a line looks like an error, and which ranks' labels occur. A feature may be set needlessly, which
costs time, but is never missing.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import NamedTuple

import hyperscan

# Texts in the lines of a failure. They are like the engine's anchors, but more general.
ERRORS = (
    r"Traceback \(most recent call last\)|\b[A-Za-z_.]*(?:Error|Exception|Interrupt)\b\s?[:(]"
    r"|(?:^|\W|\x1b\[[\d;]{0,20}m)(?:FATAL|CRITICAL|ERROR)\W|\[(?:error|fatal)\]|\bSegmentation fault|\bcore dumped"
    r"|\bSIG(?:KILL|SEGV|ABRT|BUS|FPE)\b|\bKilled\b|\bNCCL WARN\b"
    r"|\bXid\b|\boom-kill|[Oo]ut of memory|\bWatchdog caught\b|\bpanic\b|\bfailed \(exitcode|srun: error"
)
_RANK_BITS = 100  # ranks are distinguished by their last two digits
# Written for each case, because ignoring case would take three times as long. {} is the number.
OF_RANK = r"(?:[rR](?:ank|ANK)[ =:_-]{{0,3}}|\[(?:default|trainer|worker|role_\w+)){}\b"
_BRACKETS = r"\]<std(?:out|err)>|:\d\] |:\d\d\] "  # of mpirun, horovodrun, `[host:3] `: they do not say of which rank
_FLAGS = hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_SINGLEMATCH
_HEAD = 1  # byte of flags before the bits of the ranks
SIZE = _HEAD + (_RANK_BITS + 7) // 8  # bytes


class BlockFeatures(NamedTuple):
    """`error`: a line looks like an error. `brackets`: a line may be of any rank. `ranks`: one bit for each number of
    two digits."""

    error: bool = False
    brackets: bool = False
    ranks: int = 0

    def may_hold(self, rank: int) -> bool:
        """Returns whether the block may contain a line of the rank. Valid only for labels that name ranks (`rank3`,
        `[default3]`)."""
        return self.brackets or bool(self.ranks >> rank % _RANK_BITS & 1)

    def __or__(self, other: BlockFeatures) -> BlockFeatures:
        return BlockFeatures(self.error or other.error, self.brackets or other.brackets, self.ranks | other.ranks)

    def dump(self) -> bytes:
        """Returns the features as SIZE bytes."""
        return bytes([self.error | self.brackets << 1]) + self.ranks.to_bytes(SIZE - _HEAD, "little")


def load(stored: bytes) -> BlockFeatures:
    """Returns the features from the bytes that `dump` returned."""
    return BlockFeatures(bool(stored[0] & 1), bool(stored[0] & 2), int.from_bytes(stored[_HEAD:SIZE], "little"))


def features_of(data: bytes) -> BlockFeatures:
    """Returns the features of a block. Each pattern is reported once, however often it occurs."""
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
