"""Compares the calls of all ranks and finds the few ranks that called something else.

Ranks of one program make the same calls in the same order in each group. So of two healthy ranks, the calls of one are
the first calls of the other. A rank that skipped, added or changed a call differs from all others, shortly before the
hang. Ranks that run different programs, such as the stages of a pipeline, differ all the time. Then nothing is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torchtriage.domain.evidence import Call, RankDump

_MAX_CLASSES = 64  # classes of ranks with equal calls; with more, there is no common program
_KEPT = 16  # the number of completed calls that a dump keeps of a group; older ones are missing
_OF_ALL = "default_pg#0"  # every rank is a member, even if it has not used it yet
_MIN_COUNT = 3  # ranks that are needed to outvote one rank


@dataclass(frozen=True, slots=True)
class Departure:
    """The first call of a rank that differs, and what the other ranks called there."""

    own: Call
    theirs: Call


# name of the group, number of the call in it, and the part of the call that must be equal on all ranks
_Step = tuple[str, int, str]
_Steps = tuple[_Step, ...]


@dataclass(slots=True)
class _Class:
    """Ranks with equal calls. `calls` are those of the first of them."""

    steps: _Steps
    names: frozenset[str]
    calls: list[Call]
    ranks: list[int]


@dataclass(frozen=True, slots=True)
class _Split:
    """The number of calls that two classes have in common, and the index in each of the first call that differs, or
    None."""

    common: int
    own: int | None = None
    theirs: int | None = None


def departures(dumps: Mapping[int, RankDump], form: Callable[[Call], str]) -> dict[int, Departure]:
    """Returns the ranks that departed from the common program, and where. Empty if there are none, or if no majority
    follows the program. `form` returns the part of a call that must be equal on all ranks."""
    classes = _classes(dumps, form)
    if not 1 < len(classes) <= _MAX_CLASSES or len(dumps) < _MIN_COUNT:
        return {}
    splits = {(a, b): _split(classes[a], classes[b]) for a in range(len(classes)) for b in range(a)}

    def agree(a: int, b: int) -> bool:
        return splits[max(a, b), min(a, b)].own is None

    def weight(some: frozenset[int]) -> tuple[int, int]:
        """Returns the number of ranks in the classes, and the number of calls that these have in common."""
        shared = sum(split.common for pair, split in splits.items() if some.issuperset(pair))
        return sum(len(classes[at].ranks) for at in some), shared

    weights = {some: weight(some) for first in range(len(classes)) for some in [_agreeing(first, classes, agree)]}
    healthy = max(weights, key=lambda some: weights[some])
    if 2 * weights[healthy][0] <= len(dumps) or list(weights.values()).count(weights[healthy]) > 1:
        return {}
    found: dict[int, Departure] = {}
    for at, strange in enumerate(classes):
        if at in healthy:
            continue
        against = [(pair, split) for pair, split in splits.items() if at in pair and healthy.intersection(pair)]
        (a, b), split = max(
            ((pair, split) for pair, split in against if split.own is not None), key=lambda one: one[1].common
        )
        other, own, theirs = (classes[b], split.own, split.theirs) if a == at else (classes[a], split.theirs, split.own)
        assert own is not None
        assert theirs is not None
        if len(strange.steps) - own > split.common:
            return {}  # it differs for longer than it agreed, so it is another program
        found |= dict.fromkeys(strange.ranks, Departure(strange.calls[own], other.calls[theirs]))
    return found


def _classes(dumps: Mapping[int, RankDump], form: Callable[[Call], str]) -> list[_Class]:
    found: dict[tuple[_Steps, frozenset[str]], _Class] = {}
    for rank, dump in dumps.items():
        names = _names(dump)
        views = [(names[key], view) for key, view in dump.groups.items() if not view.mixed]
        kept = [(call, name) for name, view in views for call in (*view.ended, *view.pending)]
        since = max((view.ended[0].order for _, view in views if len(view.ended) >= _KEPT), default=0)
        calls = sorted(((call, name) for call, name in kept if call.order >= since), key=lambda one: one[0].order)
        steps = tuple((name, call.sequence, form(call)) for call, name in calls)
        key = (steps, frozenset((*names.values(), _OF_ALL)))
        found.setdefault(key, _Class(steps, key[1], [call for call, _ in calls], [])).ranks.append(rank)
        if len(found) > _MAX_CLASSES:
            break
    return list(found.values())


def _names(dump: RankDump) -> dict[str, str]:
    """Returns for each group a name that is the same on all ranks: its name, and its index among this rank's groups of
    that name."""
    found: dict[str, str] = {}
    counts: dict[str, int] = {}
    for key, view in dump.groups.items():
        counts[view.name] = counts.get(view.name, -1) + 1
        found[key] = f"{view.name}#{counts[view.name]}"
    return found


def _split(one: _Class, other: _Class) -> _Split:
    """Returns how far two classes agree. Compares only the groups that both have."""
    names = one.names & other.names
    mine = [at for at, step in enumerate(one.steps) if step[0] in names]
    theirs = [at for at, step in enumerate(other.steps) if step[0] in names]
    where = {other.steps[at][:2]: number for number, at in reversed([*enumerate(theirs)])}
    begin = next((number for number, at in enumerate(mine) if one.steps[at][:2] in where), None)
    if begin is None:
        return _Split(0)
    pairs = [*zip(mine[begin:], theirs[where[one.steps[mine[begin]][:2]] :], strict=False)]
    common = next((number for number, (a, b) in enumerate(pairs) if one.steps[a] != other.steps[b]), len(pairs))
    return _Split(common, *pairs[common]) if common < len(pairs) else _Split(common)


def _agreeing(first: int, classes: list[_Class], agree: Callable[[int, int], bool]) -> frozenset[int]:
    """Returns a class and those that agree with it and with each other, the largest first."""
    found = [first]
    for at in sorted(range(len(classes)), key=lambda at: -len(classes[at].ranks)):
        if at != first and all(agree(at, known) for known in found):
            found.append(at)
    return frozenset(found)
