"""Explains a hang from the dumps of many ranks: which collective each rank is in, who never joined, and who joined
another one.

A rank that others wait for is at fault only if it waits for nobody itself. So the waiting is followed to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from torchtriage.domain.evidence import Call, GroupView, Hang, RankDump
from torchtriage.domain.line import Line
from torchtriage.evidence.call_order import departures
from torchtriage.evidence.collective_vocabulary import CollectiveVocabulary
from torchtriage.evidence.rank_states import Standing, states_of
from torchtriage.evidence.wait_graph import sinks
from torchtriage.lazy_regex import lazy_regex

_TRANSFER = lazy_regex(r"(send|recv) (\d{1,7})(?:->|<-)(\d{1,7})")
_ALL_RANKS = "default_pg"  # name of the group of all ranks
_MAX_LINES = 6  # lines of dumps that are shown

CollectiveKey = tuple[str, int]  # a group, and the number of a collective in it
WaitNode = int | CollectiveKey  # a rank, or a collective


@dataclass(frozen=True, slots=True)
class Blame:
    """Why and where one rank is at fault, and what it called instead."""

    kind: str
    place: CollectiveKey
    other: Call | None = None
    theirs: Call | None = None  # what the others called there, if not all are in it


@dataclass(slots=True)
class _Group:
    """A process group as reported in all dumps."""

    key: str
    name: str
    members: tuple[int, ...] = ()
    views: dict[int, GroupView] = field(default_factory=dict)
    unsure: bool = False  # no dump lists its members, so a rank without a dump may be one

    def came(self, rank: int, number: int) -> bool:
        return rank in self.views and self.views[rank].enqueued >= number

    def call_of(self, rank: int, number: int) -> Call | None:
        """Returns the pending call of the rank with this number, or None."""
        view = self.views.get(rank)
        return next((call for call in view.pending if call.sequence == number), None) if view else None

    def calls(self, number: int) -> dict[int, Call]:
        """Returns the ranks whose call with this number is pending, with the call."""
        return {rank: call for rank in self.views if (call := self.call_of(rank, number)) is not None}

    def ended(self, number: int) -> list[int]:
        """Returns the ranks that completed the call with this number."""
        return [
            rank
            for rank, view in self.views.items()
            if view.completed >= number
            and (not view.pending or number < view.pending[0].sequence)
            and all(call.state == "completed" for call in view.ended)
        ]

    def given_up(self, number: int) -> dict[int, Call]:
        """Returns the ranks that are no longer in the call, while it is unknown whether it completed or failed. This
        happens with Gloo."""
        return {
            rank: call
            for rank, view in self.views.items()
            for call in view.ended
            if call.sequence == number and call.state != "completed"
        }


def hang_of(
    dumps: Mapping[int, RankDump],
    words: CollectiveVocabulary,
    world_size: int | None = None,
    doing: Mapping[int, str] | None = None,
) -> Hang | None:
    """Returns the hang that the dumps of a run show, or None if no rank waits. There is one dump per rank. `world_size`
    is the number of ranks, if known from elsewhere. `doing` says where the stacks of ranks are."""
    waits = _Waits(_with_unused_groups(dumps), words, world_size)
    if not (waits.inside or waits.transfers or waits.torn or waits.departed):
        return None
    hang = waits.explained()
    standing = waits.standing(hang)
    return replace(hang, states=states_of(hang, standing, waits.waits, waits.lost, doing or {}))


class _Waits:
    """All pending calls: which ranks are in which collective, and which ranks are missing there."""

    def __init__(self, dumps: Mapping[int, RankDump], words: CollectiveVocabulary, world_size: int | None) -> None:
        self.dumps, self.words = dumps, words
        every = range(max((*(rank + 1 for rank in dumps), world_size or 0)))
        self.groups = _groups(dumps, every)
        known = {*every, *(rank for group in self.groups.values() for rank in group.members)}
        self.lost = sorted(known - dumps.keys())
        # for each rank and group, the first and the last pending collective
        self.inside: dict[CollectiveKey, list[int]] = {}
        for rank, dump in dumps.items():
            for key, view in dump.groups.items():
                for number in {view.pending[0].sequence, view.pending[-1].sequence} if view.pending else ():
                    self.inside.setdefault((key, number), []).append(rank)
        self.began = {place: self._join_time(place) for place in self.inside}
        self.missing = {place: self._missing(place) for place in self.inside}
        self.transfers = {rank: peers for rank, dump in dumps.items() if (peers := set(self._unanswered(rank, dump)))}
        self.left = self._left()
        self.torn = self._mismatched_groups()
        self.departed = departures(dumps, self._form)

    def explained(self) -> Hang:
        """Returns the ranks at fault, as far as the dumps show. The most reliable signs come first."""
        if self.departed:
            return self._hang_of(self._departed_ranks())
        forced = self._ranks_with_other_call() | self._unfinished()
        blamed = self._blamed(forced, True) or self._blamed(forced, False) or self._not_started()
        if blamed:
            return self._hang_of(blamed)
        absent = (
            {} if self.torn else self._ranks_without_dump()
        )  # if ranks disagree, Gloo aborts other ranks than those at fault
        if absent:
            kind = "absent" if len(absent) <= len(self.dumps) else "few-dumps"
            place = min(absent.values(), key=self._by_size)
            return self._hang(kind, sorted(absent) if kind == "absent" else (), place)
        crossed = any(sum(isinstance(node, int) for node in sink) > 1 for sink in self._sinks({}, True))
        # If a rank waits in a group whose other members are in no dump, not all ranks are in the same call.
        unsure = any(self.groups[key].unsure for key, _ in self.inside)
        crossed = crossed or (unsure and self._misses_rank())
        return self._hang(
            "crossed" if crossed or self.torn else "together", (), min(self.inside, key=self._by_size, default=None)
        )

    def _misses_rank(self) -> bool:
        """Returns whether a rank with a dump did not join a call of the group of all ranks."""
        return any(self.missing[place] for place in self.inside if not self.groups[place[0]].unsure)

    def _left(self) -> dict[CollectiveKey, list[int]]:
        """Returns the last call of each rank that waits nowhere, if it is unknown whether it completed. With Gloo, a
        rank whose peer is gone leaves its call with an exception."""
        found: dict[CollectiveKey, list[int]] = {}
        for rank, dump in self.dumps.items():
            views = dump.groups.values()
            if not any(view.pending or view.transfers for view in views):
                last = max((call for view in views for call in view.ended), key=lambda call: call.order, default=None)
                if last is not None and last.state != "completed":
                    found.setdefault((last.group, last.sequence), []).append(rank)
        return found

    def _lost_at(self, place: CollectiveKey) -> list[int]:
        """Returns the ranks without a dump for which the ranks at this place may have waited. No rank that does the
        same in this group, or in similar groups, got further."""
        group = self.groups[place[0]]
        alike = (view for one in (group, *self._same_name_groups(group)) for view in one.views.values())
        if place in self.left and any(view.enqueued > place[1] for view in alike):
            return []
        if not group.unsure:
            return [rank for rank in group.members if rank not in self.dumps]
        others = {rank for one in self._same_name_groups(group) if not one.unsure for rank in one.members}
        return [rank for rank in self.lost if rank not in others]

    def waits(self, rank: int) -> bool:
        """Returns whether a rank has a pending call."""
        return rank in self.transfers or any(view.pending for view in self.dumps[rank].groups.values())

    def standing(self, hang: Hang) -> dict[int, Standing]:
        """Returns for each rank its first pending call, or else its last call; the name of the group; and the ranks
        that it waits for: those that did not join, or else the suspects of that group."""
        missing = {
            place: tuple(self.missing[place] or self._blocked_earlier(place) or self._lost_at(place))
            for place in self.inside
        }
        found: dict[int, Standing] = {}
        blamed: dict[str, tuple[int, ...]] = {}
        for rank, dump in self.dumps.items():
            views = dump.groups.values()
            pending = [call for view in views for call in (*view.pending[:1], *view.transfers[:1])]
            call = min(pending, key=lambda call: call.order, default=None)
            call = call or max(
                (call for view in views for call in view.ended), key=lambda call: call.order, default=None
            )
            group = self.groups[call.group] if call else None
            others = missing.get((call.group, call.sequence), ()) if call and pending else ()
            if pending and call and call.point_to_point:
                others = tuple(self.transfers.get(rank, ()))
            if pending and group and not others:
                others = blamed.setdefault(group.key, self._suspects_in(hang, group))
            found[rank] = call, group.name if group else "", others
        return found

    def _suspects_in(self, hang: Hang, group: _Group) -> tuple[int, ...]:
        members = frozenset(group.members)
        return tuple(suspect for suspect in hang.suspects if suspect in members or group.unsure)

    def _departed_ranks(self) -> dict[int, Blame]:
        """Returns the ranks that departed from the program that most ranks run."""
        return {
            rank: Blame("other-call", (left.theirs.group, left.theirs.sequence), left.own, left.theirs)
            for rank, left in self.departed.items()
        }

    def _unfinished(self) -> dict[int, Blame]:
        """Returns the ranks that did not complete a collective which others completed. All ranks had joined it, so
        these ranks are at fault."""
        found: dict[int, Blame] = {}
        for place in sorted(self.inside, key=self._by_join_time):
            group = self.groups[place[0]]
            inside, ended = group.calls(place[1]), group.ended(place[1])
            needs_all_ranks = all(self.words.needs_all_ranks(call.operation) for call in inside.values())
            if needs_all_ranks and 0 < len(inside) <= len(ended):
                for rank in inside:
                    found.setdefault(rank, Blame("unfinished", place))
        return found

    def _mismatched_groups(self) -> dict[str, tuple[CollectiveKey, dict[str, list[int]]]]:
        """Returns, for each group in which ranks made different calls with the same number, the first such number and
        the ranks by call, the most frequent call first."""
        found: dict[str, tuple[CollectiveKey, dict[str, list[int]]]] = {}
        for place in sorted(self.inside.keys() | self.left.keys(), key=lambda place: place[1]):
            sides: dict[str, list[int]] = {}
            group = self.groups[place[0]]
            for rank, call in (group.calls(place[1]) | group.given_up(place[1])).items():
                sides.setdefault(self._form(call), []).append(rank)
            if len(sides) > 1 and place[0] not in found:
                found[place[0]] = place, dict(sorted(sides.items(), key=lambda side: -len(side[1])))
        return found

    def _ranks_with_other_call(self) -> dict[int, Blame]:
        """Returns the few ranks that made another call than most ranks."""
        found: dict[int, Blame] = {}
        for place, sides in self.torn.values():
            usual = self._usual(place, sides)
            if usual is not None:
                few = [rank for form, ranks in sides.items() if form != usual for rank in ranks]
                found |= {rank: Blame("other-call", place, self._call_at(place, rank)) for rank in few}
        return found

    def _call_at(self, place: CollectiveKey, rank: int) -> Call | None:
        group = self.groups[place[0]]
        return (group.given_up(place[1]) | group.calls(place[1])).get(rank)

    def _usual(self, place: CollectiveKey, sides: Mapping[str, list[int]]) -> str | None:
        """Returns what most ranks called at a place where they differ. If both sides are equally large, uses what
        similar groups of other ranks called there."""
        most, *others = sides
        if len(sides[most]) > sum(len(sides[other]) for other in others):
            return most
        seen = {
            self._form(call)
            for group in self._same_name_groups(self.groups[place[0]])
            for view in group.views.values()
            for call in (*view.pending, *view.ended)
            if call.sequence == place[1]
        }
        known = [form for form in sides if form in seen]
        return known[0] if len(known) == 1 else None

    def _blamed(self, forced: Mapping[int, Blame], with_transfers: bool) -> dict[int, Blame]:
        """Returns the ranks at which all waiting ends."""
        found = dict(forced)
        torn = {rank for _, sides in self.torn.values() for ranks in sides.values() for rank in ranks}
        accused: dict[int, CollectiveKey | None] = {
            rank: at for rank, at in self._missing_ranks().items() if rank not in torn
        }
        if with_transfers and not self.inside:
            accused.update({peer: None for peers in self.transfers.values() for peer in peers if peer in self.dumps})
        for sink in self._sinks(forced, with_transfers):
            ranks = [node for node in sink if isinstance(node, int)]
            if len(ranks) == 1 and ranks[0] in accused and ranks[0] not in found:
                found[ranks[0]] = Blame("missing", accused[ranks[0]] or self._any_place())
            elif len(ranks) > 1:
                found |= self._desynchronized(sink)
        return found

    def _desynchronized(self, sink: Iterable[WaitNode]) -> dict[int, Blame]:
        """Returns, of ranks that wait for each other, those that skipped a call or made one too many. Similar groups of
        other ranks show it: all completed the skipped call, or none joined the additional one."""
        found: dict[int, Blame] = {}
        for place in (node for node in sink if not isinstance(node, int)):
            alike = self._same_name_groups(self.groups[place[0]])
            views = [view for group in alike for view in group.views.values()]
            if views and all(view.completed >= place[1] for view in views):
                found |= {rank: Blame("missing", place) for rank in self.missing[place]}
            elif views and self.missing[place] and all(view.enqueued < place[1] for view in views):
                found |= {rank: Blame("early", place) for rank in self.inside[place]}
        return found

    def _same_name_groups(self, group: _Group) -> list[_Group]:
        """Returns the other groups of the same name, which do the same with other ranks."""
        return [other for other in self.groups.values() if other is not group and other.name == group.name]

    def _missing_ranks(self) -> dict[int, CollectiveKey]:
        """Returns the ranks that did not join, each with the first place where it is missing."""
        found: dict[int, CollectiveKey] = {}
        for place in sorted(self.inside, key=self._by_join_time):
            for rank in self.missing[place]:
                found.setdefault(rank, place)
        return found

    def _sinks(self, forced: Mapping[int, Blame], with_transfers: bool) -> list[frozenset[WaitNode]]:
        edges: dict[WaitNode, set[WaitNode]] = {rank: set() for rank in (*self.dumps, *self.lost)}
        for place, ranks in self.left.items():
            if lost := self._lost_at(place):
                edges[place] = set(lost)
                for rank in ranks:
                    edges[rank].add(place)
        for place, ranks in self.inside.items():
            edges[place] = set(self.missing[place] or self._blocked_earlier(place) or self._lost_at(place))
            for rank in ranks:
                if rank not in forced:
                    edges[rank].add(place)
        for rank, peers in self.transfers.items() if with_transfers else ():
            if rank not in forced:
                edges[rank] |= {peer for peer in peers if peer in self.dumps}
        return sinks(edges)

    def _blocked_earlier(self, place: CollectiveKey) -> set[int]:
        """Returns the ranks that joined, but must first complete an earlier collective of another group."""
        return {
            rank
            for rank, call in self.groups[place[0]].calls(place[1]).items()
            if any(
                view.pending and view.pending[0].order < call.order
                for key, view in self.dumps[rank].groups.items()
                if key != place[0]
            )
        }

    def _missing(self, place: CollectiveKey) -> list[int]:
        """Returns the members of the group that have a dump and did not join at the place."""
        group = self.groups[place[0]]
        return [rank for rank in group.members if rank in self.dumps and not group.came(rank, place[1])]

    def _unanswered(self, rank: int, dump: RankDump) -> Iterator[int]:
        """Yields the peers that did not call the other end of a send or recv."""
        for key, view in dump.groups.items():
            own = Counter(end for call in view.transfers if (end := self._ends(key, call)) is not None)
            for (kind, peer), count in own.items():
                other = self.dumps.get(peer)
                back = "recv" if kind == "send" else "send"
                calls = other.groups[key].transfers if other and key in other.groups else ()
                if sum(self._ends(key, call) == (back, rank) for call in calls) < count:
                    yield peer

    def _ends(self, key: str, call: Call) -> tuple[str, int] | None:
        """Returns whether a transfer is a send or a recv, and the rank at its other end."""
        transfer, members = _TRANSFER.match(call.operation), self.groups[key].members
        if transfer is None or int(transfer[3]) >= len(members):
            return None
        return transfer[1], members[int(transfer[3])]

    def _not_started(self) -> dict[int, Blame]:
        """Returns the few ranks whose GPU did not start a collective that all ranks joined and the GPUs of the others
        started."""
        for place in sorted(self.inside, key=self._by_size):
            calls = self.groups[place[0]].calls(place[1])
            late = [rank for rank, call in calls.items() if call.state == "scheduled"]
            started = sum(call.state == "started" for call in calls.values())
            if not self.missing[place] and not self._blocked_earlier(place) and 0 < len(late) < started:
                return {rank: Blame("not-begun", place) for rank in late}
        return {}

    def _ranks_without_dump(self) -> dict[int, CollectiveKey | None]:
        """Returns the ranks without a dump at which all waiting ends."""
        lost = {node for sink in self._sinks({}, True) if len(sink) == 1 for node in sink if node in self.lost}
        found: dict[int, CollectiveKey | None] = {}
        for place in sorted(self.inside, key=self._by_size):
            if not self.missing[place]:
                found.update({rank: place for rank in self._lost_at(place) if rank in lost and rank not in found})
        found.update({rank: None for rank in lost if isinstance(rank, int) and rank not in found})
        peers = {peer for peers in self.transfers.values() for peer in peers}
        return found or {peer: None for peer in peers if peer not in self.dumps}

    def _form(self, call: Call) -> str:
        """Returns the part of a call that must be equal on all ranks."""
        even = self.words.needs_equal_sizes(call.operation)
        return f"{call.operation} {call.sizes} {call.dtypes}" if even else call.operation

    def _join_time(self, place: CollectiveKey) -> int:
        """Returns the time, in ns, at which the first rank joined at the place."""
        return min((call.created_ns for call in self.groups[place[0]].calls(place[1]).values()), default=0)

    def _by_join_time(self, place: CollectiveKey) -> tuple[int, int, str]:
        """Sort key for places: the place that a rank joined first comes first."""
        return (self.began[place], place[1], place[0])

    def _by_size(self, place: CollectiveKey | None) -> tuple[int, int, str]:
        """Sort key for places: the place with the most ranks comes first."""
        return (-len(self.inside[place]), place[1], place[0]) if place else (0, 0, "")

    def _any_place(self) -> CollectiveKey:
        return min(self.inside, key=self._by_size, default=("", 0))

    def _hang_of(self, blamed: Mapping[int, Blame]) -> Hang:
        """Returns the hang for the sign that most of the ranks at fault show."""
        kinds = Counter(blame.kind for blame in blamed.values())
        rank = min(blamed, key=lambda rank: (-kinds[blamed[rank].kind], rank))
        blame = blamed[rank]
        hang = self._hang(blame.kind, sorted(blamed), blame.place, rank, blame.other)
        apart = blame.other is not None and blame.other.group != blame.place[0]
        other_group = self.groups[blame.other.group].name if apart and blame.other else ""
        return replace(hang, call=blame.theirs or hang.call, other_group=other_group)

    def _hang(
        self,
        kind: str,
        suspects: Iterable[int],
        place: CollectiveKey | None,
        first: int | None = None,
        other: Call | None = None,
    ) -> Hang:
        suspects = tuple(suspects)
        group = self.groups.get(place[0]) if place else None
        waiting = sorted({rank for ranks in self.inside.values() for rank in ranks} | self.transfers.keys())
        calls = group.calls(place[1]) if group and place else {}
        shown = {rank: call for rank, call in calls.items() if rank not in suspects} or calls
        last = self._last(first, place[0]) if first is not None and place else None
        lines = [self.dumps[first].line(last)] if first is not None and last else []
        lines += [self.dumps[rank].line(call) for rank, call in [*shown.items(), *calls.items()]]
        return Hang(
            kind, suspects, tuple(rank for rank in waiting if rank not in suspects), next(iter(shown.values()), None),
            group.name if group else "", _different(lines or self._any_lines()), last, other,
        )  # fmt: skip

    def _last(self, rank: int, key: str) -> Call | None:
        """Returns the last collective of the group that a rank called."""
        view = self.dumps[rank].groups.get(key)
        calls = (*view.ended, *view.pending) if view else ()
        return max(calls, key=lambda call: call.order, default=None)

    def _any_lines(self) -> list[Line]:
        """Returns the lines of pending sends and recvs if no collective is pending."""
        return [
            dump.line(call) for dump in self.dumps.values() for view in dump.groups.values() for call in view.transfers
        ]


def _with_unused_groups(dumps: Mapping[int, RankDump]) -> Mapping[int, RankDump]:
    """Returns the dumps, with groups added to ranks that never used them. Gloo's dumps do not list members. Groups of
    one name have equal sizes, so one that is too small lacks the ranks that are in none of them."""
    by_name: dict[str, dict[str, set[int]]] = {}
    names: dict[str, GroupView] = {}
    for rank, dump in dumps.items():
        for key, view in dump.groups.items():
            if not view.members:
                by_name.setdefault(view.name, {}).setdefault(key, set()).add(rank)
                names.setdefault(key, view)
    added: dict[int, dict[str, GroupView]] = {}
    for groups in by_name.values():
        size = max(map(len, groups.values()))
        free = dumps.keys() - set().union(*groups.values())
        short = [key for key, ranks in groups.items() if len(ranks) < size]
        if len(short) == 1 and len(free) == size - len(groups[short[0]]):
            empty = replace(names[short[0]], enqueued=0, completed=0, pending=(), transfers=(), ended=(), mixed=False)
            for rank in free:
                added.setdefault(rank, {})[short[0]] = empty
    return {
        rank: replace(dump, groups={**dump.groups, **added[rank]}) if rank in added else dump
        for rank, dump in dumps.items()
    }


def _groups(dumps: Mapping[int, RankDump], every: range) -> dict[str, _Group]:
    """Returns all groups with their members: those listed in a dump; for a group that all dumps have, every rank up to
    the last; otherwise the ranks with a dump of the group."""
    found: dict[str, _Group] = {}
    for rank, dump in dumps.items():
        for key, view in dump.groups.items():
            group = found.setdefault(key, _Group(key, view.name, view.members))
            group.views[rank] = view
    for group in found.values():
        if not group.members:
            of_all = group.views.keys() == dumps.keys() or _ALL_RANKS in group.name
            group.members, group.unsure = tuple(every if of_all else sorted(group.views)), not of_all
    return found


def _different(lines: Iterable[Line]) -> tuple[Line, ...]:
    return tuple({(line.file, line.number): line for line in lines}.values())[:_MAX_LINES]
