"""Facts from the numbers of an out-of-memory message: who holds the GPU's memory, and what would fit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LARGE = 2**30  # bytes of one tensor: smaller ones are held by the hundred, and their multiples say nothing
_ALMOST = 0.002
_CONTEXT = 2 * 2**30  # bytes that CUDA itself takes of a GPU for each process, at most
_HOLDER = lazy_regex(r"\bProcess (\d{1,10}) has [\d.]+ [MG]iB memory in use")
LAUNCHER_PROCESS_WORDS = "launcher-process-words"  # a list of the vocabulary


def gpu_memory(failure: Failure) -> Iterator[Fact]:
    """`copies_held`, where what is allocated is a multiple of what was asked for; `fits_if_joined`, where unused memory
    would hold it, were it one piece; `unused_percent`, what PyTorch's cache does not use; `short_by` how much more was
    asked for than was free, and `parts_needed`, into how many parts a tensor must be split to fit into that; of a full
    GPU, what others hold (`held_by_others`, `others_percent`) or how much more than its memory is allocated
    (`beyond_capacity`); `other_rank_pid`, a process with memory on this GPU that this job's launcher started;
    `ranks_on_gpu`, how many ranks that fail alike would fill it together."""
    captured = failure.root.captured
    if (copies := _copies(captured)) is not None:
        yield failure.fact("copies_held", copies)
    if (joined := _joined(captured)) is not None:
        yield failure.fact("fits_if_joined", joined)
    unused, total = (_size(captured, name) for name in ("unallocated", "total"))
    if unused is not None and total:
        yield failure.fact("unused_percent", round(100 * unused / total))
    yield from _shortage(failure, captured)
    for name, value in _holders(captured):
        yield failure.fact(name, value)
    if (pid := _other_rank(failure)) is not None:
        yield failure.fact("other_rank_pid", pid)
    if (ranks := _ranks_together(failure, captured)) is not None:
        yield failure.fact("ranks_on_gpu", ranks, "ranks")


def _shortage(failure: Failure, captured: Mapping[str, str]) -> Iterator[Fact]:
    asked, free = (_size(captured, name) for name in ("asked", "free"))
    if not asked or free is None or asked <= free:
        return
    unit = captured["asked"].partition(" ")[2]
    yield failure.fact("short_by", f"{(asked - free) / _UNITS[unit]:.2f} {unit}")
    if free:
        yield failure.fact("parts_needed", math.ceil(asked / free), "parts")


def _copies(captured: Mapping[str, str]) -> int | None:
    """-> how many times what was asked for is allocated already, where that is a whole number: as many tensors of one
    size are held."""
    held, asked = (_bytes(captured.get(name, "")) for name in ("allocated", "asked"))
    if not held or not asked or asked < _LARGE:
        return None
    times = held / asked
    whole = round(times)
    return whole if whole > 1 and abs(times - whole) <= _ALMOST * whole else None


def _joined(captured: Mapping[str, str]) -> str | None:
    """-> what is free and what PyTorch's cache does not use together, where the latter alone would hold what was asked
    for, were it one piece."""
    asked, free, unused = (_size(captured, name) for name in ("asked", "free", "unallocated"))
    if not asked or free is None or not unused or unused < asked:
        return None
    return f"{(free + unused) / _UNITS['GiB']:.2f} GiB"


def _holders(captured: Mapping[str, str]) -> Iterator[tuple[str, str | int]]:
    """-> what of a GPU's used memory is not this process's, where the message tells what is; else what is not in
    PyTorch's cache. Or, where the cache is larger than the GPU, by how much."""
    total, free, own, allocated = (_size(captured, name) for name in ("total", "free", "own", "allocated"))
    if not total or allocated is None:
        return
    if allocated > total:
        yield "beyond_capacity", f"{(allocated - total) / _UNITS['GiB']:.2f} GiB"
        return
    reserved = _size(captured, "reserved") or allocated + (_size(captured, "unallocated") or 0)
    others = total - (free or 0) - (own or reserved)
    if free is not None and others > 0:
        yield "held_by_others", f"{others / _UNITS['GiB']:.2f} GiB"
        yield "others_percent", round(100 * others / total)


def _other_rank(failure: Failure) -> int | None:
    """-> the process among those that the message names which the job's own launcher names too: another rank."""
    words = failure.reading.matcher.patterns.vocabulary.words(LAUNCHER_PROCESS_WORDS)
    for pid in _HOLDER.findall(failure.root.words):
        if any(re.search(rf"{re.escape(word)}{pid}\b", failure.log) for word in words):
            return int(pid)
    return None


def _ranks_together(failure: Failure, captured: Mapping[str, str]) -> int | None:
    """-> how many ranks fail with this very message, where what they hold together is all of this GPU that is in use:
    each of them alone on a GPU would not fill it."""
    finding = failure.finding
    ranks = len(finding.ranks or finding.local_ranks) or finding.count
    total, free, allocated = (_size(captured, name) for name in ("total", "free", "allocated"))
    if ranks < 2 or not total or free is None or not allocated:
        return None
    held = ranks * (_size(captured, "reserved") or allocated)
    return ranks if held <= total - free <= held + ranks * _CONTEXT else None


def _size(captured: Mapping[str, str], name: str) -> float | None:
    return _bytes(captured[name]) if name in captured else None


def _bytes(size: str) -> float:
    """-> the bytes of a size such as `55.88 GiB`; 0 where it is none."""
    number, _, unit = size.partition(" ")
    try:
        return float(number) * _UNITS.get(unit, 0)
    except ValueError:
        return 0
