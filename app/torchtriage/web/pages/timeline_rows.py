"""The rows of a timeline: hosts and their ranks, with marks at their places.

Up to MAX_HOSTS hosts and up to MAX_RANKS ranks per host have a row each. Beyond that, ranks that behaved the same
share a row, so that the picture stays small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import RankMark

KINDS = ("first", "missing", "failed", "waited", "stopped", "ended", "silent")
MAX_HOSTS = 12
MAX_RANKS = 16
_MAX_ROWS = 20
_MAX_LABEL = 32  # characters
_MAX_NAMES = 12  # hosts that are named where many share a row
_NEAR = 6.0  # places that one sign covers
_FIRST = ("first", "missing")


@dataclass(frozen=True, slots=True)
class Sign:
    """A symbol in a row, with details in the list at `event`. `since` is where waiting started, `until` the position of
    the last of several. `faint`: it is only a consequence."""

    kind: str
    at: float
    line: int
    file: str | None = None
    event: int | None = None
    since: float | None = None
    until: float | None = None
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A host, or ranks to which the same happened. `hosts` are the hosts in the row. `kind` is the worst result of its
    ranks. Lines of the row were seen up to the position `seen`."""

    ranks: RankSet
    kind: str
    signs: tuple[Sign, ...]
    hosts: tuple[str, ...] = ()
    seen: float = 0.0
    rows: tuple[Row, ...] = ()

    @property
    def label(self) -> str:
        """Returns the ranks, shortened if there are many ranges."""
        ranks = str(self.ranks)
        return ranks if len(ranks) <= _MAX_LABEL else ranks[:_MAX_LABEL].rsplit(",", 1)[0] + ", …"

    @property
    def named(self) -> str:
        """Returns the hosts, as many as fit in a tooltip."""
        return ", ".join(self.hosts[:_MAX_NAMES]) + (", …" if len(self.hosts) > _MAX_NAMES else "")

    @property
    def failed_first(self) -> bool:
        return self.kind in _FIRST


def rows(
    marks: Sequence[tuple[RankMark, Sign | None]],
    host_ranks: Mapping[str, RankSet],
    of_host: Mapping[str, Sequence[Sign]],
) -> tuple[Row, ...]:
    """Returns a row per host, with rows of its ranks below. If the hosts are unknown, returns rows of ranks. `marks`
    come with their signs, None if no line shows any. `of_host` are the signs of hosts themselves."""
    mark_of = {rank: n for n, (mark, _) in enumerate(marks) for rank in mark.ranks}
    placed: dict[str, list[int]] = {host: list(ranks) for host, ranks in host_ranks.items()}
    for host in of_host:
        placed.setdefault(host, [])
    host_rows = _hosts(placed, mark_of, marks, of_host)
    left = mark_of.keys() - {rank for ranks in placed.values() for rank in ranks}
    others = _ranks(sorted(left), mark_of, marks)
    if host_rows and len(others) > 1:
        others = [_joined(RankSet.of(left), others)]
    return tuple([*host_rows, *others][:_MAX_ROWS])


def _hosts(
    placed: Mapping[str, list[int]],
    mark_of: Mapping[int, int],
    marks: Sequence[tuple[RankMark, Sign | None]],
    of_host: Mapping[str, Sequence[Sign]],
) -> list[Row]:
    alike: dict[object, list[str]] = defaultdict(list)
    for host, ranks in placed.items():
        kinds = frozenset((mark.kind, mark.entry) for mark in _marks_of(ranks, mark_of, marks))
        own = (
            len(placed) <= MAX_HOSTS
            or any(kind in _FIRST for kind, _ in kinds)
            or any(not sign.faint for sign in of_host.get(host, ()))
        )
        alike[host if own else (kinds, bool(of_host.get(host)))].append(host)
    made = []
    for hosts in alike.values():
        ranks = [rank for host in hosts for rank in placed[host]]
        below = _ranks(sorted(ranks), mark_of, marks)
        signs = [sign for host in hosts for sign in of_host.get(host, ())]
        made.append(replace(_joined(RankSet.of(ranks), below, signs), hosts=tuple(hosts)))
    return sorted(made, key=lambda row: (not row.failed_first, len(row.hosts) > 1)) if len(placed) > MAX_HOSTS else made


def _ranks(
    ranks: Sequence[int], mark_of: Mapping[int, int], marks: Sequence[tuple[RankMark, Sign | None]]
) -> list[Row]:
    """Returns rows of ranks in order. If they share rows, the one that failed first comes first."""
    if len(ranks) <= MAX_RANKS:
        return [_row(RankSet.of([rank]), [marks[mark_of[rank]]] if rank in mark_of else []) for rank in ranks]
    alike: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for rank in ranks:
        mark = marks[mark_of[rank]][0] if rank in mark_of else None
        alike[(mark.kind, mark.entry) if mark else ("silent", None)].append(rank)
    made = []
    for part in alike.values():
        theirs = dict.fromkeys(mark_of[rank] for rank in part if rank in mark_of)
        made.append(_row(RankSet.of(part), [marks[n] for n in theirs]))
    return sorted(made, key=lambda row: KINDS.index(row.kind))


def _row(ranks: RankSet, marks: Sequence[tuple[RankMark, Sign | None]]) -> Row:
    """Returns the row of ranks with marks of one kind. Its sign spans from the first mark to the last."""
    kind = marks[0][0].kind if marks else "silent"
    signs = [sign for _, sign in marks if sign]
    if not signs:
        return Row(ranks, kind, ())
    first = min(signs, key=lambda sign: sign.at)
    last = max(sign.until or sign.at for sign in signs)
    since = [sign.since for sign in signs if sign.since is not None]
    sign = replace(first, until=last if last > first.at else None, since=min(since) if since else None)
    return Row(ranks, kind, (sign,), seen=first.at if sign.since is None else sign.since)


def _joined(ranks: RankSet, below: Sequence[Row], own: Sequence[Sign] = ()) -> Row:
    """Returns a row that combines the rows below it and its own signs. Equal signs at one place appear once."""
    kind = min((row.kind for row in below), key=KINDS.index, default="silent")
    symbols = [*own, *(sign for row in below for sign in row.signs)]
    shown: list[Sign] = []
    for sign in sorted(symbols, key=lambda sign: (sign.at, sign.kind)):
        near = next(
            (n for n, other in enumerate(shown) if other.kind == sign.kind and sign.at - other.at < _NEAR), None
        )
        if near is None:
            shown.append(sign)
        elif sign.until or sign.at > shown[near].at:
            shown[near] = replace(shown[near], until=max(sign.until or 0.0, sign.at, shown[near].until or 0.0))
    shown.sort(key=lambda sign: (not sign.faint, sign.kind in _FIRST))  # What matters is drawn over the rest.
    return Row(ranks, kind, tuple(shown), seen=max((row.seen for row in below), default=0.0), rows=tuple(below))


def _marks_of(
    ranks: Iterable[int], mark_of: Mapping[int, int], marks: Sequence[tuple[RankMark, Sign | None]]
) -> list[RankMark]:
    return [marks[n][0] for n in dict.fromkeys(mark_of[rank] for rank in ranks if rank in mark_of)]
