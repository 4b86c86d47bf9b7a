"""Reads reports of NCCL's RAS service, as text or JSON. Finds ranks that are dead, do not respond, have failed or are
behind.

The formats are those of NCCL 2.24 to 2.32, src/ras/client_support.cc.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from torchtriage.domain.evidence import Hang
from torchtriage.domain.line import Line, Position
from torchtriage.domain.rank_set import RankSet
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.whole_files import NotRead

MAX_BYTES = 32 << 20
_MAX_OPENED = 1_000_000  # lists and objects in JSON
_MAX_LINES = 6  # lines of a report that are shown
_MAX_RANKS = 65_536  # missing ranks in a list
_GONE = ("DEAD", "INCOMPLETE")
_SUCCESS, _IN_PROGRESS = 0, 7  # values of ncclResult_t
_BEGINS = lazy_regex(r"Job summary\s*$")
# (total) GPUs:       4          8            1         32       32
_GPUS = lazy_regex(r"\s+\d+\s+[\d-]+\s+[\d-]+\s+\d+\s+(\d+)\s*$")
#     0         1         4       7-8        32        32   RUNNING  INCOMPLETE
_GROUP = lazy_regex(r"\s*(\d+)\s+\d+\s+\d+\s+[\d-]+\s+(\d+)\s+\d+\s+[A-Z]+\s+[A-Z,|]+\s*$")
_BLOCK = lazy_regex(r"(?:#(\d+)-\d+ \(([0-9a-f]+)\) )?(INCOMPLETE|DEAD|ERROR|TIMEOUT|MISMATCH)\s*$")
_PROCESS = lazy_regex(r"\s+Process (\d+) on node (\S+) managing GPUs? (\S+)")
_MISSING = lazy_regex(r"\s+The missing ranks?: ([\d, -]+)")
_RANK = lazy_regex(r"\s+Rank (\d+) (?:(.+?) )?-- (?:GPU (\S+) managed by process (\d+) on node (\S+))?")
_RANKS = lazy_regex(r"\s+(\d+) ranks (.+)$")
_LAUNCHED = lazy_regex(r"ha(?:s|ve) (?:launched up to operation (\d+)|not launched any operations)")
_STATUS = lazy_regex(r"ha(?:s|ve) status (\w+)")
_REPORTED = lazy_regex(r"reported (.+)")
_COUNTS_OF = lazy_regex(r"\s+Communicator ranks have different (\w+) operation counts")
_PLAIN = lazy_regex(
    r"=+\s*$|NCCL version |CUDA runtime version |Job summary|Communicators\.\.\.|Errors\s*$|Warnings\s*$"
    r"|Group +Comms|[ (]"
)
# NCCL 2.28 omits the comma between the device and the state of a missing rank.
_NO_COMMA = lazy_regex(r'("nvml_dev": ?\d+)(\s*"status")')


@dataclass(frozen=True, slots=True)
class Process:
    """A process, shown in `line`. `rank` is its rank in the communicator, or None if only the job's list has it."""

    rank: int | None
    line: Line = field(compare=False)
    gpu: str | None = None
    pid: int | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """Ranks that have the same value, which is the number of operations that they launched, their status or their
    error. `processes` is empty if there are too many to list."""

    value: str
    count: int
    processes: tuple[Process, ...] = ()


@dataclass(slots=True)
class Block:
    """The content under one heading. `communicator` is its hash, or None for the job. `what` is the operation whose
    counts differ."""

    kind: str
    line: Line
    communicator: str | None = None
    size: int | None = None
    what: str = ""
    sides: list[Side] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """One reply of the service. `gpus` is the number of GPUs of the job."""

    gpus: int | None = None
    blocks: list[Block] = field(default_factory=list)

    def is_of_all(self, block: Block) -> bool:
        """Returns whether a block is about the communicator of all GPUs. Its ranks are those of the run."""
        return block.size is not None and block.size == self.gpus


def read_reports(data: bytes, file: str | None, position: int) -> list[Report]:
    """Returns the reports of a file, in order. Raises NotRead if it has neither format."""
    text = data.decode("utf-8", "replace")
    if text.lstrip()[:1] == "{":
        return [_of_json(text, file, position)]
    reports = list(_of_text(text, file, position))
    if not reports:
        raise NotRead("no report in it")
    return reports


def is_report_alone(data: bytes) -> bool:
    """Returns whether a file contains only reports, so it is not a log."""
    lines = (line for line in data.decode("utf-8", "replace").split("\n") if line.strip())
    return data.lstrip()[:1] == b"{" or all(_PLAIN.match(line) or _BLOCK.match(line) for line in lines)


def hang_of_reports(reports: Iterable[Report]) -> Hang | None:
    """Returns the hang of the ranks that the newest report names, or None if it names none."""
    *earlier, newest = [Report(), *reports]
    gone = [block for block in newest.blocks if block.kind in _GONE and block.processes]
    if gone:
        return _hang_of_unresponsive(
            max(gone, key=lambda block: (newest.is_of_all(block), block.kind == "DEAD")), newest
        )
    broken = [block for block in newest.blocks if block.kind == "ERROR" and block.sides]
    if broken:
        block = max(broken, key=lambda block: block.size or 0)
        side = block.sides[0]
        return _hang("error", side.processes, block, newest, f"; reported {side.value}", side.count)
    uneven = [block for block in newest.blocks if block.kind == "MISMATCH" and len(block.sides) > 1]
    if not uneven:
        return None
    block = max(uneven, key=lambda block: (block.what != "", block.size or 0))
    return _hang_of_differing(
        block, newest, any(_same(block, other) for report in earlier[-1:] for other in report.blocks)
    )


def _same(block: Block, other: Block) -> bool:
    """Returns whether nothing changed between two reports of one communicator."""
    return (block.communicator, block.what, block.sides) == (other.communicator, other.what, other.sides)


def _hang_of_unresponsive(block: Block, report: Report) -> Hang:
    """Returns the hang of the processes that do not respond. They are dead if the report says so."""
    dead = {(one.pid, one.node) for other in report.blocks if other.kind == "DEAD" for one in other.processes}
    named = tuple(block.processes)
    is_dead = any(one.pid is not None and (one.pid, one.node) in dead for one in named)
    return _hang("dead" if is_dead else "silent", named, block, report)


def _hang_of_differing(block: Block, report: Report, still: bool) -> Hang:
    """Returns the hang of the few ranks that launched fewer or more operations than the others, or that have another
    status."""
    if not block.what:
        few = min(block.sides, key=lambda side: side.count)
        others = max(block.sides, key=lambda side: side.count)
        return _hang("status", few.processes, block, report, f"; {few.value}, others {others.value}", few.count)
    sides = sorted(block.sides, key=lambda side: int(side.value))
    least, most = sides[0], sides[-1]
    ahead = least.count > most.count
    few, others = (most, least) if ahead else (least, most)
    kind = "ahead" if ahead else "stuck" if still else "behind"
    difference = f"; {block.what} {few.value}, others {others.value}"
    return _hang(kind, few.processes, block, report, difference, few.count)


def _hang(
    kind: str, named: tuple[Process, ...], block: Block, report: Report, difference: str = "", count: int | None = None
) -> Hang:
    size = block.size or report.gpus
    of_all = report.is_of_all(block)
    ranks = tuple(sorted(one.rank for one in named if one.rank is not None))
    suspects = ranks if of_all and kind != "ahead" else ()
    who = _named(named, ranks, of_all) if named else f"{count} ranks"
    report_text = f"NCCL RAS: {kind}: {who}{difference}; {count or len(named)} of {size} ranks"
    nodes = {one.node for one in named}
    host = nodes.pop() if len(nodes) == 1 else None
    lines = dict.fromkeys((*(one.line for one in named[:1]), block.line))
    return Hang(kind, suspects, (), None, "", tuple(lines), report=report_text, host=host)


def _named(named: tuple[Process, ...], ranks: tuple[int, ...], of_all: bool) -> str:
    """Returns `Rank 21 (GPU 5, process 3487984 on 172.16.64.213)`. For several ranks, only the first has its place."""
    first = named[0]
    if not ranks:
        place = f"Process {first.pid} on {first.node} (GPU {first.gpu})"
        return f"{place} and {len(named) - 1} more" if len(named) > 1 else place
    place = f"GPU {first.gpu}, process {first.pid} on {first.node}" if first.pid is not None else ""
    numbers = str(RankSet.of(ranks)).replace(",", ", ")
    who = f"Rank {numbers}" if len(ranks) == 1 else f"Ranks {numbers}"
    who = who if of_all else f"{who} of a communicator"
    first_of = f"rank {first.rank}: " if len(ranks) > 1 else ""
    return f"{who} ({first_of}{place})" if place else who


def _of_text(text: str, file: str | None, position: int) -> Iterator[Report]:
    report: Report | None = None
    sizes: dict[str, int] = {}
    block: Block | None = None
    side: Side | None = None
    for number, shown in enumerate(text.split("\n"), 1):
        if _BEGINS.match(shown):
            if report is not None:
                yield report
            report, sizes, block, side = Report(), {}, None, None
        if report is None:
            continue
        if (gpus := _GPUS.match(shown)) and report.gpus is None:
            report.gpus = int(gpus[1])
        elif group := _GROUP.match(shown):
            sizes[group[1]] = int(group[2])
        elif head := _BLOCK.match(shown):
            line = Line(number, shown, shown, Position(position, number), file)
            block, side = Block(head[3], line, head[2], sizes.get(head[1])), None
            report.blocks.append(block)
        elif block is not None:
            block, side = _with_line(report, block, side, Line(number, shown, shown, Position(position, number), file))
    if report is not None:
        yield report


def _with_line(report: Report, block: Block, side: Side | None, line: Line) -> tuple[Block, Side | None]:
    """Adds a line below a heading. Returns the block and the side to which the next line belongs."""
    text = line.text
    if counts := _COUNTS_OF.match(text):
        if block.sides or block.what:
            block = Block(block.kind, block.line, block.communicator, block.size)
            report.blocks.append(block)
        block.what = counts[1]
        return block, None
    if process := _PROCESS.match(text):
        block.processes.append(Process(None, line, process[3], int(process[1]), process[2]))
    elif missing := _MISSING.match(text):
        ranks = RankSet.from_json(missing[1].replace(" ", ""))
        block.processes += _with_places(report, ranks, line) if len(ranks) <= _MAX_RANKS else ()
    elif rank := _RANK.match(text):
        one = Process(int(rank[1]), line, rank[3], int(rank[4]) if rank[4] else None, rank[5])
        if rank[2] and (value := _value(rank[2])) is not None:
            side = Side(value, 1, (one,))
            block.sides.append(side)
        elif side is not None:
            side = Side(side.value, side.count, (*side.processes, one))
            block.sides[-1] = side
        else:
            block.processes.append(one)
    elif (several := _RANKS.match(text)) and (value := _value(several[2])) is not None:
        side = Side(value, int(several[1]))
        block.sides.append(side)
    return block, side


def _with_places(report: Report, ranks: RankSet, line: Line) -> list[Process]:
    """Returns the missing ranks of a communicator. If there is one, it is the single process that the job misses."""
    missed = [one for block in report.blocks if block.communicator is None for one in block.processes]
    if len(ranks) == len(missed) == 1:
        return [replace(missed[0], rank=next(iter(ranks)))]
    return [Process(rank, line) for rank in ranks]


def _value(words: str) -> str | None:
    if launched := _LAUNCHED.match(words):
        return launched[1] or "0"
    found = _STATUS.match(words) or _REPORTED.match(words)
    return found[1].strip() if found else None


def _of_json(text: str, file: str | None, position: int) -> Report:
    if text.count("[") + text.count("{") > _MAX_OPENED:
        raise NotRead(f"more than {_MAX_OPENED:,} lists")
    try:
        document = json.loads(_NO_COMMA.sub(r"\1,\2", text))
    except (ValueError, RecursionError) as error:
        raise NotRead("incomplete JSON") from error
    communicators = _dicts(_dict(document).get("communicators"))
    every = [rank for one in communicators for key in ("ranks", "missing_ranks") for rank in _dicts(one.get(key))]
    report = Report(len({(rank.get("host"), rank.get("pid"), rank.get("cuda_dev")) for rank in every}))
    for one in communicators:
        name = str(one.get("hash", ""))[:40]
        line = _line_of(text, name, file, position)
        report.blocks += _blocks(one, name, line)
    return report


def _blocks(one: Mapping[str, Any], name: str, line: Line) -> Iterator[Block]:
    size = one.get("size") if isinstance(one.get("size"), int) else None
    present, missing = _dicts(one.get("ranks")), _dicts(one.get("missing_ranks"))
    for dead, kind in ((True, "DEAD"), (False, "INCOMPLETE")):
        found = [rank for rank in missing if bool(_dict(rank.get("status")).get("considered_dead")) is dead]
        if found:
            yield Block(kind, line, name, size, processes=[_process(rank, line) for rank in found])
    if errors := _sides(present, line, _error):
        yield Block("ERROR", line, name, size, sides=errors)
    operations = {key for rank in present for key in _dict(rank.get("collective_counts"))}
    for operation in sorted(operations):
        sides = _sides(present, line, partial(_launched, operation))
        if len(sides) > 1:
            yield Block("MISMATCH", line, name, size, operation, sides)
    if len(states := _sides(present, line, _state)) > 1:
        yield Block("MISMATCH", line, name, size, "", states)


def _sides(ranks: Iterable[dict[str, Any]], line: Line, value: Callable[[Mapping[str, Any]], str | None]) -> list[Side]:
    """Groups the ranks by the value that a function returns for each, the largest group first. Ranks with None are left
    out."""
    found: dict[str, list[Process]] = {}
    for rank in ranks:
        if (number := value(rank)) is not None:
            found.setdefault(number, []).append(_process(rank, line))
    ordered = sorted(found.items(), key=lambda side: -len(side[1]))
    return [Side(number, len(processes), tuple(processes)) for number, processes in ordered]


def _launched(operation: str, rank: Mapping[str, Any]) -> str | None:
    count = _dict(rank.get("collective_counts")).get(operation)
    return str(count) if isinstance(count, int) else None


def _error(rank: Mapping[str, Any]) -> str | None:
    status = _dict(rank.get("status"))
    codes = [status.get("init_state"), status.get("async_error")]
    failed = [code for code in codes if isinstance(code, int) and code not in (_SUCCESS, _IN_PROGRESS)]
    return f"NCCL error {failed[0]}" if failed else None


def _state(rank: Mapping[str, Any]) -> str:
    status = _dict(rank.get("status"))
    if status.get("abort_flag"):
        return "ABORT"
    return "FINALIZE" if status.get("finalize_called") or status.get("destroy_flag") else "RUNNING"


def _process(rank: Mapping[str, Any], line: Line) -> Process:
    number, pid = rank.get("rank"), rank.get("pid")
    return Process(
        number if isinstance(number, int) else None,
        line,
        str(rank.get("cuda_dev"))[:20],
        pid if isinstance(pid, int) else None,
        str(rank.get("host"))[:100],
    )


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _line_of(text: str, name: str, file: str | None, position: int) -> Line:
    """Returns the line that names a communicator."""
    at = re.search(re.escape(name), text) if name else None
    number = text.count("\n", 0, at.start()) + 1 if at else 1
    shown = text.split("\n", number)[number - 1].strip()[:200]
    return Line(number, shown, shown, Position(position, number), file)
