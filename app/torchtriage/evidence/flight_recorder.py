"""Reads a dump of PyTorch's flight recorder (JSON) and returns the process groups of one rank.

Format and names are from torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 1.0 (torch 2.2) to 2.10 (2.13).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from torchtriage.domain.evidence import Call, GroupView, RankDump, RankTimes
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.pickled_dumps import UNREAD
from torchtriage.reading.whole_files import NotRead

MAX_BYTES = 64 << 20  # bytes of a dump's text
_MAX_OPENED = 2_000_000  # lists and objects in a dump
_FIRST, _LAST = 16, 16  # pending calls, and completed calls, that are kept of each group of each rank
_MAX_RANKS = 1_000_000
_MAX_LENGTH = 2000  # characters of the line that shows an entry
_COALESCED = "coalesced"
_LIBRARY = lazy_regex(
    r"(?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3\.\d+[/\\]|^<|[/\\]torch[/\\](?:_|distributed|nn|utils|csrc)"
)
_MAX_WHERE_LENGTH = 80


def read_dump(
    text: bytes, file: str | None, position: int, rank_in_name: int | None, host: str | None = None
) -> RankDump:
    """Returns the dump of a rank on `host`. The rank is the only one that is a member of all its groups, or else the
    one in the file's name.

    Raises NotRead if it is not a dump, or the rank is unknown.
    """
    data = _parsed(text)
    entries = [entry for entry in data.get("entries") or () if isinstance(entry, dict)]
    config = _config(data.get("pg_config"))
    rank = _rank(config, rank_in_name)
    if rank is None:
        raise NotRead("its rank is in neither its groups nor its name")
    by_line = text.count(b"\n") > len(entries)
    groups = _Groups(config)
    for at, entry in enumerate(entries):
        groups.add(entry, order=at, number=at + 2 if by_line else 1)
    views = groups.views(data.get("pg_status"))
    kept = (call.order for view in views.values() for call in (*view.pending, *view.transfers, *view.ended))
    texts = {at: json.dumps(entries[at], ensure_ascii=False)[:_MAX_LENGTH] for at in kept}
    return RankDump(rank, file, position, views, groups.newest_ns, groups.oldest_ns, host, texts)


def _parsed(text: bytes) -> dict[str, Any]:
    if text.count(b"[") + text.count(b"{") > _MAX_OPENED:
        raise NotRead(f"more than {_MAX_OPENED:,} lists")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotRead("incomplete JSON") from error
    if isinstance(data, list):
        data = {"entries": data}
    if not isinstance(data, dict):
        raise NotRead("not a flight-recorder dump")
    if data.get("flight_recorder") == UNREAD:
        raise NotRead(str(data.get("reason")))
    return data


def _config(config: Any) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Returns name and ranks of each group, by the name that entries use for it."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name, about in config.items() if isinstance(config, dict) else ():
        if isinstance(about, dict):
            ranks = about.get("ranks")
            numbers = ranks if isinstance(ranks, list) else re.findall(r"\d{1,7}", str(ranks))
            members = tuple(int(number) for number in numbers if str(number).isdecimal())[:_MAX_RANKS]
            found[name] = (str(about.get("desc") or "")[:200], members)
    return found


def _rank(config: Mapping[str, tuple[str, tuple[int, ...]]], named: int | None) -> int | None:
    """Returns the rank that wrote the dump: a rank is a member of all groups that it knows."""
    sets = [frozenset(members) for _, members in config.values() if members]
    common: frozenset[int] = reduce(frozenset.__and__, sets) if sets else frozenset()
    return next(iter(common)) if len(common) == 1 else named


@dataclass(slots=True)
class _Open:
    """A group while its entries are read."""

    name: str = ""
    ids: set[str] = field(default_factory=set)
    calls: list[Call] = field(default_factory=list)
    joined: dict[int, bool] = field(default_factory=dict)  # batches of sends and recvs, with whether they completed


class _Groups:
    """The groups that one rank reports. Entries are added in order."""

    def __init__(self, config: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
        self._config = config
        self._open: dict[str, _Open] = {name: _Open() for name in config}
        self.newest_ns = self.oldest_ns = 0

    def add(self, entry: Mapping[str, Any], order: int, number: int) -> None:
        name, about = _group_of(entry)
        group = self._open.setdefault(name, _Open())
        group.name = group.name or about
        group.ids.add(str(entry.get("pg_id")))
        call = _call(entry, self._key(name), order, number)
        self.newest_ns = max(self.newest_ns, call.created_ns)
        self.oldest_ns = min(self.oldest_ns or call.created_ns, call.created_ns)
        if call.point_to_point and call.operation == _COALESCED:
            group.joined[call.sequence] = call.done
        group.calls.append(call)

    def views(self, status: Any) -> dict[str, GroupView]:
        """Returns the groups by key. `status` has the last call numbers of each group, by the process's own number of
        the group."""
        statuses = self._statuses(status if isinstance(status, dict) else {})
        return {
            self._key(name): self._view(name, group, statuses.get(name))
            for name, group in self._open.items()
            if name or group.calls
        }

    def _statuses(self, status: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        """Returns the last call numbers by the groups' names. A process numbers its groups in the order of their
        creation, and so do their names. So groups without an entry can be identified if all groups have a status."""
        by_id = {number: name for name, group in self._open.items() for number in group.ids}
        if len(status) == len(self._config) and all(map(str.isdecimal, (*status, *self._config))):
            by_id = dict(zip(sorted(status, key=int), sorted(self._config, key=int), strict=True)) | by_id
        return {
            by_id[number]: (_int(about.get("last_enqueued_collective")), _int(about.get("last_completed_collective")))
            for number, about in status.items()
            if number in by_id and isinstance(about, dict)
        }

    def _key(self, name: str) -> str:
        """Returns a key of the group that is the same in all dumps. Two groups with the same name have different
        ranks."""
        members = self._config.get(name, ("", ()))[1]
        return f"{name}:{min(members)}-{max(members)}x{len(members)}" if members else name

    def _view(self, name: str, group: _Open, status: tuple[int, int] | None) -> GroupView:
        about, members = self._config.get(name, ("", ()))
        own = [call for call in group.calls if not call.point_to_point]
        transfers = [
            call for call in group.calls if call.point_to_point and not group.joined.get(call.sequence, call.done)
        ]
        pending = [call for call in own if not call.done]
        mixed = len(own) < len(group.calls)
        enqueued = max((call.sequence for call in own), default=0)
        completed = max((call.sequence for call in own if call.done), default=0)
        if status is not None and not mixed:
            enqueued, completed = max(enqueued, status[0]), max(completed, status[1])
        return GroupView(
            self._key(name), about or group.name or name, members, enqueued, completed,
            (*pending[:_FIRST], *pending[max(_FIRST, len(pending) - 1) :]), tuple(transfers[:_FIRST]),
            tuple(call for call in own if call.done)[-_LAST:], mixed,
        )  # fmt: skip


def _group_of(entry: Mapping[str, Any]) -> tuple[str, str]:
    group = entry.get("process_group")
    if isinstance(group, list | tuple) and group:
        return str(group[0])[:200], str(group[1] if len(group) > 1 else "")[:200]
    return str(group or entry.get("pg_name") or entry.get("pg_id", ""))[:200], ""


def _call(entry: Mapping[str, Any], key: str, order: int, number: int) -> Call:
    backend, _, operation = str(entry.get("profiling_name") or "")[:200].rpartition(":")
    transfer = bool(entry.get("is_p2p")) or operation.startswith(("send ", "recv "))
    named = "p2p_seq_id" if transfer else "collective_seq_id"
    sequence = _int(entry.get(named) if named in entry else entry.get("seq_id"))
    state = str(entry.get("state") or "scheduled")
    # Backends of a device use its events to see that a call completed. With Gloo, a retired call completed, whatever
    # its state is.
    retired = bool(entry.get("retired")) and backend == "gloo"
    created = _int(entry.get("time_created_ns")) or 1000 * _int(entry.get("time_created_us"))
    return Call(
        key, sequence, operation or "?", order, number, transfer, _short(entry.get("input_sizes")),
        _short(entry.get("input_dtypes")), state, state == "completed" or retired, created,
        _int(entry.get("time_discovered_completed_ns")), _int(entry.get("timeout_ms")), _where(entry.get("frames")),
    )  # fmt: skip


def _int(value: Any) -> int:
    return value if isinstance(value, int) and -(1 << 62) < value < 1 << 62 else 0


def _short(value: Any) -> str:
    return json.dumps(value)[:200] if value else ""


def _where(frames: Any) -> str | None:
    """Returns the user's line that made the call: the innermost frame outside libraries, or None."""
    for frame in frames if isinstance(frames, list) else ():
        file = str(frame.get("filename", "")) if isinstance(frame, dict) else ""
        if file and not is_library(file):
            return f"{file.rpartition('/')[2]}:{_int(frame.get('line'))}"[:_MAX_WHERE_LENGTH]
    return None


def is_library(file: str) -> bool:
    """Returns whether the file belongs to an installed package or to Python itself."""
    root = file.partition("/")[0].removesuffix(".py")  # py-spy shortens paths: selectors.py, torch/utils/data/…
    return _LIBRARY.search(file) is not None or root == "torch" or root in sys.stdlib_module_names


def times_of(dump: RankDump) -> RankTimes:
    """Returns when the completed collectives were called and when they completed, by the rank's own clock."""
    ended = [call for view in dump.groups.values() for call in view.ended if not call.point_to_point]
    return RankTimes(
        dump.rank, dump.host,
        {(call.group, call.sequence): call.ended_ns for call in ended if call.ended_ns},
        {(call.group, call.sequence): call.created_ns for call in ended if call.created_ns},
        (dump.oldest_ns, dump.newest_ns),
    )  # fmt: skip


def newest_of_each_rank(dumps: Iterable[RankDump]) -> dict[int, RankDump]:
    """Returns one dump per rank. If a rank has several, for example from several attempts, returns the newest."""
    found: dict[int, RankDump] = {}
    for dump in dumps:
        known = found.get(dump.rank)
        if known is None or dump.newest_ns >= known.newest_ns:
            found[dump.rank] = dump
    return found
