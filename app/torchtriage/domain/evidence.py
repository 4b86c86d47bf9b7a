"""What is known about a run in addition to its logs: flight recorder dumps, stacks, and the hang that they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchtriage.domain.line import Line, Position
from torchtriage.domain.rank_set import RankSet


@dataclass(frozen=True)
class Source:
    """The form of one file of the run. `note` says why it is left out, or which part was not read."""

    file: str | None
    taken_for: str
    rank: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One collective, send or recv, as one rank recorded it.

    `group` is the group's key in all dumps. `sequence` counts the collectives of that group, or the sends and recvs of
    the rank. `state` is scheduled, started or completed. `number` is the line of the entry in the dump's text. `where`
    is the user's line of code. Within one rank, `order` grows with time.
    """

    group: str
    sequence: int
    operation: str
    order: int
    number: int
    point_to_point: bool = False
    sizes: str = ""
    dtypes: str = ""
    state: str = "scheduled"
    done: bool = False
    created_ns: int = 0
    ended_ns: int = 0  # when the recorder saw its end; Gloo records no such time
    timeout_ms: int = 0
    where: str | None = None


@dataclass(frozen=True, slots=True)
class GroupView:
    """What one rank reports about one process group. `members` are its ranks in the group's order, or empty if no dump
    lists them. `enqueued` and `completed` are the last collectives that the rank called and that ended. `pending` are
    calls that did not end: the first ones and the last. `ended` are the last calls that did."""

    key: str
    name: str
    members: tuple[int, ...] = ()
    enqueued: int = 0
    completed: int = 0
    pending: tuple[Call, ...] = ()
    transfers: tuple[Call, ...] = ()  # sends and recvs that did not end
    ended: tuple[Call, ...] = ()
    mixed: bool = False  # it has sends and recvs, which its status counts too


@dataclass(frozen=True, slots=True)
class RankDump:
    """The flight recorder's dump of one rank."""

    rank: int
    file: str | None
    position: int  # number of the file in the run
    groups: Mapping[str, GroupView]
    newest_ns: int = 0
    oldest_ns: int = 0
    host: str | None = None  # from its path
    texts: Mapping[int, str] = field(default_factory=dict)  # the entries of the calls that are kept, by their order

    def line(self, call: Call) -> Line:
        """Returns the line of the dump's text that contains a call."""
        text = self.texts.get(call.order, "")
        return Line(call.number, text, text, Position(self.position, call.number), self.file, self.rank)


@dataclass(frozen=True, slots=True)
class RankTimes:
    """The times at which one rank called collectives (`called`) and at which they ended (`ended`), by group and
    sequence number, in nanoseconds of the rank's clock. `span` are the times of its first and last call, ended or
    not."""

    rank: int
    host: str | None
    ended: Mapping[tuple[str, int], int]
    called: Mapping[tuple[str, int], int]
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class StackLine:
    """One frame of a stack: file, line, function."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class RankStack:
    """The stack of a process's main thread, innermost frame first. `rank` is None if it is unknown. `process` is the
    process's number if a file has the stacks of several."""

    rank: int | None
    file: str | None
    position: int
    frames: tuple[StackLine, ...]
    line: Line
    process: int | None = None


_NO_RANKS = RankSet()


@dataclass(frozen=True)
class RankState:
    """Ranks that are at the same point while the run hangs.

    `kind`: waits (in a collective), left (its last call is over, and it does not wait), lost (it left no dump), others
    (the ranks of all smaller states together). For suspects, it is the kind of the hang. `call` is the operation and
    number that these ranks wait in or called last, and `group` is the name of its group. `waits_for` are the ranks that
    did not make this call. `where` is the line of code with the call, `doing` the current line of a stack.
    """

    ranks: RankSet
    kind: str
    call: str | None = None
    group: str | None = None
    waits_for: RankSet = _NO_RANKS
    where: str | None = None
    doing: str | None = None
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """The ranks that kept the others waiting, and the call in which these wait.

    `kind`: `missing` (the suspects never made the call that the others wait in), `absent` (they left no dump),
    `other-call` (they called something else), `early` (they made a call that no other rank made), `unfinished` (others
    ended a call that they did not), `not-begun` (their GPU never began it), `crossed` (ranks wait for one another),
    `together` (all are in the same call, and none is behind), `few-dumps` (most ranks left none), `elsewhere` (only
    stacks show it). `suspects` is empty if the data names none.
    """

    kind: str
    suspects: tuple[int, ...]
    waiting: tuple[int, ...]
    call: Call | None
    group: str  # its name for people
    lines: tuple[Line, ...]
    last: Call | None = None  # the suspect's last call
    other: Call | None = None  # the other call that it made
    other_group: str = ""  # the name of the group of that other call, if it is another group
    doing: str | None = None  # the current line of its stack
    report: str | None = None  # the message of a report of NCCL's RAS service
    host: str | None = None  # host of the suspects, if the report names it
    states: tuple[RankState, ...] = ()  # the states of all ranks, the suspects first


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """The evidence of a run: the forms of its files, and what they show. `stacked` is the number of ranks with a stack,
    `world_size` the number of ranks according to the dumps."""

    sources: tuple[Source, ...] = ()
    dumped: frozenset[int] = frozenset()
    hang: Hang | None = None
    stacked: int = 0
    reported: bool = False  # there is a report of NCCL's RAS service, or of torchfrtrace
    world_size: int | None = None
    lost: frozenset[int] = frozenset()  # ranks without a dump, if at least as many have one
    times: tuple[RankTimes, ...] = ()  # of the ranks with a dump


NO_EVIDENCE = RunEvidence()
