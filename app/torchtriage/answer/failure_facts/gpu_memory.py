"""Facts from the numbers in an out-of-memory message: which processes use the GPU's memory, and what would fit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LARGE = 2**30  # bytes of one tensor: there can be hundreds of smaller ones, so their multiples mean nothing
_ALMOST = 0.002
_CONTEXT = 2 * 2**30  # bytes: the most that CUDA itself uses on a GPU for each process
_HOLDER = lazy_regex(r"\bProcess (\d{1,10}) has [\d.]+ [MG]iB memory in use")
LAUNCHER_PROCESS_WORDS = "launcher-process-words"  # the name of a list in the vocabulary


def gpu_memory(failure: Failure) -> Iterator[Fact]:
    """Yields facts about GPU memory.

    `asked_percent`: the requested memory in percent of the allocated memory, if it is large. `copies_held`: allocated
    memory is this multiple of the requested memory. `fits_if_joined`: the unused memory that would be enough if it were
    in one piece. `unused_percent`: the share that PyTorch's cache does not use. `short_by`: how much more was requested
    than was free; `parts_needed`: the number of parts a tensor must be split into to fit.

    On a full GPU, `held_by_others` and `others_percent` give the memory that other processes use, or `beyond_capacity`
    gives how much more was allocated than the GPU has. `other_rank_pid`: a process with memory on this GPU that this
    job's launcher started. `ranks_on_gpu`: the number of ranks with the same failure that would fill the GPU together.
    """
    captured = failure.root.captured
    if (copies := _copies(captured)) is not None:
        yield failure.fact("copies_held", copies)
    held, asked = (_bytes(captured.get(name, "")) for name in ("allocated", "asked"))
    if held and asked >= _LARGE:
        yield failure.fact("asked_percent", round(100 * asked / held))
    if (joined := _free_and_unused(captured)) is not None:
        yield failure.fact("fits_if_joined", joined)
    unused, total = (_size(captured, name) for name in ("unallocated", "total"))
    if unused is not None and total:
        yield failure.fact("unused_percent", round(100 * unused / total))
    yield from _shortage(failure, captured)
    for name, value in _other_holders(captured):
        yield failure.fact(name, value)
    if (pid := _other_rank(failure)) is not None:
        yield failure.fact("other_rank_pid", pid)
    if (ranks := _ranks_sharing_gpu(failure, captured)) is not None:
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
    """Returns how many times the requested memory is already allocated, if that is a whole number: then there are as
    many tensors of one size."""
    held, asked = (_bytes(captured.get(name, "")) for name in ("allocated", "asked"))
    if not held or not asked or asked < _LARGE:
        return None
    times = held / asked
    whole = round(times)
    return whole if whole > 1 and abs(times - whole) <= _ALMOST * whole else None


def _free_and_unused(captured: Mapping[str, str]) -> str | None:
    """Returns the sum of the free memory and the memory that PyTorch's cache does not use, if the latter would be
    enough for the request in one piece."""
    asked, free, unused = (_size(captured, name) for name in ("asked", "free", "unallocated"))
    if not asked or free is None or not unused or unused < asked:
        return None
    return f"{(free + unused) / _UNITS['GiB']:.2f} GiB"


def _other_holders(captured: Mapping[str, str]) -> Iterator[tuple[str, str | int]]:
    """Yields how much of a GPU's used memory does not belong to this process, if the message says so, or else what is
    outside PyTorch's cache. If the cache is larger than the GPU, it yields the difference instead."""
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
    """Returns the process in the message that the job's own launcher also names. It is another rank."""
    words = failure.reading.matcher.patterns.vocabulary.words(LAUNCHER_PROCESS_WORDS)
    for pid in _HOLDER.findall(failure.root.words):
        if any(re.search(rf"{re.escape(word)}{pid}\b", failure.log) for word in words):
            return int(pid)
    return None


def _ranks_sharing_gpu(failure: Failure, captured: Mapping[str, str]) -> int | None:
    """Returns the number of ranks that fail with this exact message, if their memory together is all that is in use on
    this GPU. Each of them alone on a GPU would not fill it."""
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
    """Returns the bytes of a size such as `55.88 GiB`, or 0 if the text is no size."""
    number, _, unit = size.partition(" ")
    try:
        return float(number) * _UNITS.get(unit, 0)
    except ValueError:
        return 0
