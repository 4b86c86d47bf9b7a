"""What is known of a run beside its logs: dumps of the flight recorder, stacks, and the hang that they explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchtriage.domain.line import Line, Position
from torchtriage.domain.rank_set import RankSet


@dataclass(frozen=True)
class Source:
    """What one file of the run was taken for. `note` says why it is left out, or what of it was not read."""

    file: str | None
    taken_for: str
    rank: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One collective, or one send or recv, as one rank recorded it.

    `group` is the group's key in all dumps; `sequence` counts the collectives of that group, or the rank's sends and
    recvs. `state`: scheduled, started or completed. `number` is the entry's line in the dump's text, `where` the
    user's line of code. `order` grows with time in one rank.
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
    ended_ns: int = 0  # where the recorder saw that it ended; Gloo's calls have no such time
    timeout_ms: int = 0
    where: str | None = None


@dataclass(frozen=True, slots=True)
class GroupView:
    """What one rank says about one process group. `members`: its ranks in the group's order, empty where no dump tells.
    `enqueued` and `completed` are the last collectives that it called and that ended. `pending` are those that did not
    end, the first ones and the last; `ended` the last ones that did."""

    key: str
    name: str
    members: tuple[int, ...] = ()
    enqueued: int = 0
    completed: int = 0
    pending: tuple[Call, ...] = ()
    transfers: tuple[Call, ...] = ()  # sends and recvs that did not end
    ended: tuple[Call, ...] = ()
    mixed: bool = False  # it has sends and recvs, which count into what its status says


@dataclass(frozen=True, slots=True)
class RankDump:
    """The flight recorder's dump of one rank."""

    rank: int
    file: str | None
    position: int  # of the file in the run
    groups: Mapping[str, GroupView]
    newest_ns: int = 0
    oldest_ns: int = 0
    host: str | None = None  # that its path tells
    texts: Mapping[int, str] = field(default_factory=dict)  # the entries of the calls that are kept, by their order

    def line(self, call: Call) -> Line:
        """-> the line of the dump's text that holds a call."""
        text = self.texts.get(call.order, "")
        return Line(call.number, text, text, Position(self.position, call.number), self.file, self.rank)


@dataclass(frozen=True, slots=True)
class RankTimes:
    """When one rank's clock dated the collectives that ended, by group and sequence number, in nanoseconds: `ended` and
    `called`. `span`: its first and last call, ended or not."""

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
    """Where a process stood, innermost frame first; of its threads the main one. `rank` is None where nothing tells;
    `process` is its number where a file holds the stacks of several."""

    rank: int | None
    file: str | None
    position: int
    frames: tuple[StackLine, ...]
    line: Line
    process: int | None = None


_NO_RANKS = RankSet()


@dataclass(frozen=True)
class RankState:
    """Ranks that stand at the same point while the run hangs.

    `kind`: waits (in a collective), left (its last call is over, and it waits in none), lost (it left no dump), others
    (of many states, the ranks of the smaller ones); of suspects the hang's own kind. `call` is an operation and its
    number, the one that these ranks wait in or called last, and `group` the name of its group. `waits_for` are the
    ranks that did not come there. `where` is the line of code that called, `doing` where a stack stands.
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
    """Who kept the others waiting, and in what.

    `kind`: `missing` (the suspects never called what the others wait in), `absent` (they left no dump), `other-call`
    (they called something else), `early` (they called what nobody else came to), `unfinished` (others ended what they
    did not), `not-begun` (their GPU never began it), `crossed` (ranks wait for one another), `together` (all are in the
    same call, and nobody is behind), `few-dumps` (most ranks left none), `elsewhere` (only stacks tell). `suspects`
    is empty where the data names none.
    """

    kind: str
    suspects: tuple[int, ...]
    waiting: tuple[int, ...]
    call: Call | None
    group: str  # its name for people
    lines: tuple[Line, ...]
    last: Call | None = None  # what the first suspect called last
    other: Call | None = None  # what it called instead
    other_group: str = ""  # the name of the group in which it called that, where it is another
    doing: str | None = None  # where its stack stands
    report: str | None = None  # what a report of NCCL's RAS service says
    host: str | None = None  # of the suspects, where the report names it
    states: tuple[RankState, ...] = ()  # where all ranks stand, the suspects first


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of a run: what its files are, and what they show. `stacked`: of how many ranks there is a stack;
    `world_size`: how many ranks the run has, as the dumps tell."""

    sources: tuple[Source, ...] = ()
    dumped: frozenset[int] = frozenset()
    hang: Hang | None = None
    stacked: int = 0
    reported: bool = False  # there is a report of NCCL's RAS service, or of torchfrtrace
    world_size: int | None = None
    lost: frozenset[int] = frozenset()  # ranks without a dump, where at least as many left one
    times: tuple[RankTimes, ...] = ()  # of the ranks with a dump


NO_EVIDENCE = Evidence()
