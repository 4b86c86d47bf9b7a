"""Runs of many ranks on paper: programs of collectives in the groups of a model that is split three ways, one rank at
fault; out come the flight recorder's dumps as NCCL would leave them, a stream for each group."""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass, field, replace
from typing import Any

FAULTS = ("stalls", "dies", "skips", "calls-other", "other-shape", "extra-call", "gpu-error", "gpu-stalls")
NAMES = ("TENSOR_GROUP", "PIPELINE_GROUP", "DATA_GROUP", "default_pg")
_AHEAD = 12  # calls that a rank makes before it waits for the first of them
_START_NS = 1_758_610_505_000_000_000


@dataclass(frozen=True)
class Op:
    group: str
    operation: str
    size: int


@dataclass
class Rank:
    number: int
    program: list[Op]
    stops_at: int | None = None  # the call that it does not come to
    gpu_stops_at: int | None = None  # the call that its GPU does not begin
    called: int = 0
    ended: list[bool] = field(default_factory=list)


@dataclass(frozen=True)
class Simulated:
    """The dumps by rank, pickled; the rank at fault, and what the fault was."""

    dumps: dict[int, bytes]
    at_fault: int
    fault: str
    world_size: int


def simulated(seed: int, fault: str | None = None) -> Simulated:
    """Returns a run that hangs."""
    chance = random.Random(seed)
    fault = fault or chance.choice(FAULTS)
    tensor, pipeline, data = chance.choice(
        [(2, 2, 2), (1, 2, 4), (2, 1, 4), (4, 2, 2), (1, 1, 8), (2, 4, 2), (1, 1, 3)]
    )
    groups = _groups(tensor, pipeline, data)
    world = tensor * pipeline * data
    ranks = [Rank(rank, _program(rank, groups, random.Random(seed * 31))) for rank in range(world)]
    bad = ranks[chance.randrange(world)]
    at = chance.randrange(20, len(bad.program) - 40)
    _break(bad, at, fault, chance, groups)
    _run(ranks, groups)
    frozen = chance.randrange(2, 8) if fault == "gpu-error" else 0
    only_active = chance.random() < 0.5
    dumps = {
        rank.number: pickle.dumps(_dump(rank, groups, only_active, frozen if rank is bad else 0), 2)
        for rank in ranks
        if not (rank is bad and fault == "dies")
    }
    return Simulated(dumps, bad.number, fault, world)


def _groups(tensor: int, pipeline: int, data: int) -> dict[str, tuple[str, list[int]]]:
    """Returns name and members of each group that has more than one rank."""
    world = tensor * pipeline * data
    found = [(NAMES[3], list(range(world)))]
    found += [(NAMES[0], list(range(at, at + tensor))) for at in range(0, world, tensor)]
    found += [(NAMES[2], [at + tensor * step for step in range(data)]) for stage in range(pipeline)
              for at in range(stage * tensor * data, stage * tensor * data + tensor)]  # fmt: skip
    found += [(NAMES[1], [at + tensor * data * stage for stage in range(pipeline)]) for at in range(tensor * data)]
    return {str(number): item for number, item in enumerate(found) if len(item[1]) > 1 or number == 0}


def _program(rank: int, groups: dict[str, tuple[str, list[int]]], chance: random.Random) -> list[Op]:
    """Returns the same for all ranks, each in its own groups; `chance` must stand at the same place for all."""
    own = {name: key for key, (name, members) in groups.items() if rank in members}
    program: list[Op] = []
    for _ in range(60):
        for name in NAMES[:3]:
            operation, size = (
                chance.choice(["all_reduce", "_all_gather_base", "_reduce_scatter_base", "broadcast"]),
                chance.choice([16, 4096, 5120]),
            )
            count = chance.randrange(1, 3)
            program += [Op(own[name], operation, size)] * count if name in own else []
        if chance.random() < 0.3:
            program.append(Op(own["default_pg"], "all_reduce", 1))
    return program


def _break(rank: Rank, at: int, fault: str, chance: random.Random, groups: dict[str, tuple[str, list[int]]]) -> None:
    op = rank.program[at]
    if fault in ("stalls", "dies", "gpu-error"):
        rank.stops_at = at
    elif fault == "gpu-stalls":
        rank.gpu_stops_at = at
    elif fault == "skips":
        del rank.program[at]
    elif fault == "calls-other":
        rank.program[at] = replace(op, operation="gather" if op.operation != "gather" else "scatter")
    elif fault == "other-shape":
        rank.program[at] = (
            replace(op, operation="all_reduce", size=7) if op.operation == "all_reduce" else replace(op, size=7)
        )
    else:
        rank.program.insert(at, Op(op.group, "scatter", 3))


def _run(ranks: list[Rank], groups: dict[str, tuple[str, list[int]]]) -> None:
    """Lets every rank go on until none can: a call ends when all of its group came to the same, and each has ended what
    it called before."""
    moved = True
    while moved:
        moved = False
        for rank in ranks:
            while _may_call(rank):
                rank.called += 1
                rank.ended.append(False)
                moved = True
        for key, (_, members) in groups.items():
            while _end_next(key, [ranks[member] for member in members]):
                moved = True


def _may_call(rank: Rank) -> bool:
    first = rank.ended.index(False) if False in rank.ended else rank.called
    limit = len(rank.program) if rank.stops_at is None else rank.stops_at
    return rank.called < limit and rank.called - first < _AHEAD


def _end_next(key: str, members: list[Rank]) -> bool:
    """Returns whether the next call of a group could end."""
    places = []
    for rank in members:
        place = next((at for at in range(rank.called) if not rank.ended[at]), None)
        if (
            place is None
            or rank.program[place].group != key
            or (rank.gpu_stops_at is not None and place >= rank.gpu_stops_at)
        ):
            return False
        places.append(place)
    if len({rank.program[place] for rank, place in zip(members, places, strict=True)}) > 1:
        return False
    for rank, place in zip(members, places, strict=True):
        rank.ended[place] = True
    return True


def _dump(rank: Rank, groups: dict[str, tuple[str, list[int]]], only_active: bool, frozen: int) -> dict[str, Any]:
    """Returns the dump of one rank. `frozen`: so many of its last calls are not known to have ended, as its GPU failed."""
    own = {key: found for key, found in groups.items() if rank.number in found[1]}
    ids = {key: number for number, key in enumerate(own)}
    ended = list(rank.ended)
    for at in range(max(0, len(ended) - frozen), len(ended)):
        ended[at] = False
    counts: dict[str, int] = dict.fromkeys(own, 0)
    completed: dict[str, int] = dict.fromkeys(own, -1)
    entries = []
    for at in range(rank.called):
        op = rank.program[at]
        counts[op.group] += 1
        if ended[at]:
            completed[op.group] = counts[op.group]
        if only_active and ended[at]:
            continue
        started = not ended[at] and (at == 0 or ended[at - 1]) and rank.gpu_stops_at is None
        entries.append({
            "record_id": at, "pg_id": ids[op.group], "process_group": (op.group, own[op.group][0]),
            "collective_seq_id": counts[op.group], "p2p_seq_id": 0, "op_id": counts[op.group],
            "profiling_name": f"nccl:{op.operation}", "time_created_ns": _START_NS + at * 1_000_000 + rank.number,
            "input_sizes": [[op.size]], "input_dtypes": ["Float"], "output_sizes": [[op.size]], "output_dtypes": ["Float"],
            "state": "completed" if ended[at] else "started" if started else "scheduled", "retired": ended[at],
            "timeout_ms": 600000, "is_p2p": False,
        })  # fmt: skip
    status = {
        str(ids[key]): {
            "last_enqueued_collective": counts[key] or -1,
            "last_started_collective": -1,
            "last_completed_collective": completed[key],
        }
        for key in own
    }
    config = {key: {"name": key, "desc": name, "ranks": str(members)} for key, (name, members) in own.items()}
    return {
        "version": "2.9",
        "pg_config": config,
        "pg_status": status,
        "nccl_version": "2.27.3",
        "entries": entries[-2000:],
    }
