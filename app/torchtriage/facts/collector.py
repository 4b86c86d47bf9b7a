"""Collects the facts of a run: every kept line in, launcher, world size, hosts, versions, progress and phases out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import ne
from typing import Any

from torchtriage.domain.event import Event
from torchtriage.domain.host import host_name
from torchtriage.domain.line import START, Line, Position
from torchtriage.facts import progress, versions
from torchtriage.facts.host_steps import HostSteps
from torchtriage.facts.line_facts import ENOUGH_OF_FIELD, LONGEST, LineSigns, Told
from torchtriage.facts.line_forms import KeptLines
from torchtriage.facts.phases import Phases, Steps
from torchtriage.facts.progress import SpreadLines
from torchtriage.facts.registry import FactValue
from torchtriage.facts.time_range import Span
from torchtriage.facts.versions import Bounds
from torchtriage.reading.prefixes.paths import FileOrigin, writer_of

MOST_HOSTS = 4096
_MOST_LASTING = 4096
NEWEST = 2048  # values kept of one line fact: files of 1024 ranks, begun and written
# Attempt, value, whether it was told before: of a value that hundreds of ranks tell, the first line and the newest are kept.
_ValueKey = tuple[int, Any, bool]
_MOST_PROGRESS = 16  # newest lines of progress
_MOST_EARLIER = 4096  # lines of progress of earlier attempts


@dataclass(slots=True)
class Environment:
    """Feed it every kept line, `note` the signs that lines show, and `sample` now and then; it never claims a line.

    `progress` and `well` hold the positions of lines that show progress, and that say the run ended well; `wound_up` those
    of lines that clean-up code prints after a failure as well; `joined` those of a passed barrier or a placed pod;
    `refused` those of a server's answer to a request that it could not take, `serves` those in which one says that it
    is up, `logging_errors` those in which a logger could not write. `step` is the last one of the file that came furthest. `exit_code` is the last status but 0 that a line
    speaks of.
    """

    signs: LineSigns
    launcher: str | None = None
    world_size: int | None = None
    exit_code: int | None = None
    hosts: dict[str, None] = field(default_factory=dict)
    host_of: dict[int, str] = field(default_factory=dict)  # of a rank
    executed_on: set[str] = field(default_factory=set)  # all hosts of the job, as its batch system tells
    files: dict[int, FileOrigin] = field(default_factory=dict)  # of a run of several, by their number
    versions: dict[str, str] = field(default_factory=dict)
    version_at: dict[str, Line] = field(default_factory=dict)  # the lines that tell them
    span: Span = field(default_factory=Span)
    progress: list[Position] = field(default_factory=list)
    well: list[Position] = field(default_factory=list)
    wound_up: list[Position] = field(default_factory=list)
    joined: list[Position] = field(default_factory=list)
    refused: list[Position] = field(default_factory=list)
    serves: list[Position] = field(default_factory=list)
    logging_errors: list[Position] = field(default_factory=list)
    foreign: int = 0
    on_gpus: int = 0  # foreign lines, of programs that use GPUs
    of_field: int = 0
    of_devices: int = 0  # of these the ones that speak of devices alone
    around: int = 0  # lines that report no more than what stands around training
    kinds: int = 0  # of words of this field, a bit each
    values: dict[str, dict[_ValueKey, FactValue]] = field(
        default_factory=dict
    )  # of each line fact the newest, by its name
    told: KeptLines = field(default_factory=KeptLines)  # lines to be read where the run failed
    spread: SpreadLines = field(default_factory=SpreadLines)  # lines of progress from the first to the last
    host_steps: HostSteps = field(default_factory=HostSteps)  # the first lines of progress of each host
    _progressed_of: dict[int, Line] = field(default_factory=dict)  # the last line of progress of each rank
    _newest: deque[Line] = field(default_factory=lambda: deque(maxlen=_MOST_PROGRESS))  # of those of any rank
    _earlier: list[Line] = field(default_factory=list)  # the same of attempts before
    _bars: dict[str, str] = field(default_factory=dict)  # of each stream the last one, up to its count
    _attempt: int = 0
    _steps: Steps = field(default_factory=Steps)
    _phases: Phases = field(default_factory=Phases)
    _bounds: Bounds = (None, None)
    _lasting: dict[int, Told] = field(default_factory=dict)  # by their identity
    _heard: set[Bounds] = field(default_factory=lambda: {(None, None)})

    @property
    def step(self) -> int | None:
        return self._steps.read()

    @property
    def progress_of(self) -> dict[int, Position]:
        """Where the last progress of each rank stands that labels its lines."""
        return {rank: line.position for rank, line in self._progressed_of.items()}

    @property
    def progress_lines(self) -> Iterator[Line]:
        """The last lines of progress of the run, of each rank and each attempt."""
        known = (*self._earlier, *self._progressed_of.values(), *self._newest)
        yield from {(line.position, line.text): line for line in known}.values()

    @property
    def of_another_program(self) -> bool:
        """Whether more lines have the forms of another program than speak of training, of which there are few."""
        return self.of_field - (self.of_devices if self.on_gpus else 0) < min(self.foreign, ENOUGH_OF_FIELD)

    @property
    def settled(self) -> frozenset[int]:
        """The numbers of the signs of which further lines would tell nothing more."""
        enough = self.of_field - self.of_devices >= ENOUGH_OF_FIELD
        known = self.signs.of_field if enough and self.surely_of_field else frozenset()
        return known | {self.signs.path} if "python" in self.versions else known

    @property
    def surely_of_field(self) -> bool:
        """Whether a line speaks of what only training has, or lines have two kinds of words of a training loop."""
        return self.kinds.bit_count() > 1

    @property
    def torch_range(self) -> str | None:
        """The torch versions that the log's forms leave open, as `>=2.3,<2.5`."""
        by_python = versions.bounds_by_python(self.versions.get("python"))
        return versions.told(versions.narrowed([self._bounds, by_python])) or versions.told(self._bounds)

    def phase_at(self, position: Position) -> str | None:
        """-> what the same file showed last that the run did, up to the line at `position`."""
        return self._phases.at(position)

    def phase_before(self, event: Event) -> str | None:
        """-> the same for what went wrong; else what its process showed last in other files, as stdout.log."""
        phase, file = self.phase_at(event.line.position), event.line.position.file
        if phase is not None or file not in self.files:
            return phase
        writer, rank, local = writer_of(self.files[file].file or ""), event.rank, event.local_rank

        def same(place: FileOrigin) -> bool:
            known = place.rank == rank if rank is not None else local is not None and place.local_rank == local
            return (known and place.attempt == event.attempt) or writer_of(place.file or "") == writer

        others = {number for number, place in self.files.items() if number != file and same(place)}
        return self._phases.last_of(others)

    def feed(self, lines: Sequence[Line]) -> None:
        """Takes the times of many lines."""
        self._steps.read()
        self.span.feed([line.time for line in lines if line.time is not None])

    def note(self, line: Line, signs: tuple[int, ...], claimed: bool) -> None:
        """Takes what the text of a line tells, which shows the signs with these numbers.

        `claimed`: the line belongs to a traceback or a report, where `step = 5` is code and no progress.
        """
        form, text = self.signs.form_of(signs), line.text[:LONGEST]
        told = self.signs.told_by(text, signs) if form.is_read else form.told
        if form.says_more and self._lasting.get(id(told)) is not told:
            self._note(line, told, claimed)
            self._remember(told)
        self.of_field += told.of_field
        self.of_devices += told.of_devices
        self.around += told.around
        self.kinds |= told.kinds
        if form.counts and not claimed and (form.surely or progress.progressed(text)):
            self._progressed(line, told.phase)
            rank = line.rank if line.rank is not None else progress.writer(text)
            if rank is not None:
                self._progressed_of[rank] = line

    def read(self, line: Line, bits: int) -> None:
        """Takes what a line says about the line facts with these bits."""
        for number, fact in enumerate(self.signs.line_facts):
            if not bits >> number & 1:
                continue
            if fact.read is None:
                self.told.add(line)
            elif (value := fact.read(line.text[:LONGEST])) is not None:
                self._tell(fact.name, FactValue(line, value))

    def _tell(self, name: str, told: FactValue) -> None:
        """Takes a value of a line fact; those of lines that went by unkept come after those of lines below them."""
        known, attempt = self.values.setdefault(name, {}), told.line.attempt
        first, newest = (attempt, told.value, False), (attempt, told.value, True)
        before = known.setdefault(first, told)
        if before is told:
            if len(known) >= 2 * NEWEST:
                in_order = sorted(known.items(), key=lambda one: one[1].line.position)
                self.values[name] = dict(in_order[-NEWEST:])
            return
        if told.line.position < before.line.position:
            known[first], told = told, before
        last = known.get(newest)
        if last is None or last.line.position < told.line.position:
            known[newest] = told

    def pass_by(self, lines: Sequence[Line], signs: Sequence[tuple[int, ...]]) -> None:
        """Takes lines of one file that tell at most that the run goes on; `signs` has the numbers of those of each."""
        counting: set[tuple[int, ...]] = set()
        for numbers, often in Counter(signs).items():
            form = self.signs.form_of(numbers)
            self.of_field += often * form.told.of_field
            self.of_devices += often * form.told.of_devices
            self.around += often * form.told.around
            self.kinds |= form.told.kinds
            if form.counts:
                counting.add(numbers)
        if counting.issuperset(signs):  # as of most logs
            self._count(list(lines))
        elif counting:
            self._count([line for line, numbers in zip(lines, signs, strict=True) if numbers in counting])

    def _count(self, lines: list[Line]) -> None:
        """Takes lines of progress."""
        texts = "\n".join([line.text for line in lines])
        if progress.BAR in texts:
            lines = [line for line in lines if not self._drawn_again(line)]
        if not lines:
            return
        self._advance([line.position for line in lines])
        self._steps.add(lines)
        self._keep(lines)
        self.spread.add(lines)
        self.host_steps.add(lines)
        for line in lines:
            if self._phases.go_on(line):
                break
        ranks = [line.rank for line in lines]
        if "rank" in texts.lower():
            ranks = [
                progress.writer(line.text) if rank is None else rank for rank, line in zip(ranks, lines, strict=True)
            ]
        if ranks.count(None) < len(ranks):
            self._progressed_of |= {rank: line for rank, line in zip(ranks, lines, strict=True) if rank is not None}

    def _drawn_again(self, line: Line) -> bool:
        """-> whether the line is the bar above, drawn again at the same step."""
        bar = progress.bar(line.text)
        again = bar is not None and self._bars.get(line.stream) == bar
        if bar is not None:
            self._bars[line.stream] = bar
        return again

    def _keep(self, lines: Sequence[Line]) -> None:
        """Keeps the last of these lines of progress."""
        if lines[-1].attempt != self._attempt:
            if len(self._earlier) < _MOST_EARLIER:
                self._earlier += [*self._progressed_of.values(), *self._newest]
            self._attempt = lines[-1].attempt
        self._newest.extend(lines[-_MOST_PROGRESS:])

    @property
    def last_progress_lines(self) -> dict[int, Line]:
        """The last line of progress of each rank that a line names."""
        return self._progressed_of

    def last_progress(self, rank: int) -> Position | None:
        """-> where the last progress of a rank stands."""
        line = self._progressed_of.get(rank)
        return line.position if line else None

    def label(self, signs: tuple[int, ...]) -> None:
        """Takes what the start of a line tells, its label included: the form of a rank's label tells the version too."""
        self._narrow(self.signs.form_of(signs).told.bounds)

    def at(self, host: str, rank: int | None) -> None:
        """Takes a host of the run, and which rank ran there; ignores what is no host name."""
        if host_name(host) is None:
            return
        if host not in self.hosts and len(self.hosts) < MOST_HOSTS:
            self.hosts[host] = None
        if rank is not None and rank not in self.host_of:
            self.host_of[rank] = host

    def _note(self, line: Line, told: Told, claimed: bool) -> None:
        position = line.position
        if told.launcher:
            self.started_by(told.launcher)
        self.world_size = self.world_size or told.world_size
        self.exit_code = told.exit_code or self.exit_code
        for name, version in told.versions:
            known = self.versions.setdefault(name, version)
            self.version_at.setdefault(name, line)
            if version.startswith(f"{known}."):
                self.versions[name] = version
                self.version_at[name] = line
        for host in told.hosts:
            self.at(host, None)
        for rank, host in told.placed:
            self.at(host, rank)
        self.executed_on.update(filter(host_name, told.executed))
        self._narrow(told.bounds)
        if told.phase and not claimed:
            self._phases.enter(position, told.phase)
        also = ((self.refused, told.refused), (self.serves, told.serves), (self.logging_errors, told.logging_error))
        shown = ((self.well, told.well), (self.wound_up, told.wound_up), (self.joined, told.joined))
        for positions, shows in (*shown, *also):
            if shows:
                positions.append(position)
        self.foreign += told.foreign
        self.on_gpus += told.on_gpus

    def _remember(self, told: Told) -> None:
        """Ranks print the same lines. What repeating does not change is noted once."""
        anew = told.phase or told.exit_code or told.well or told.wound_up or told.joined or told.refused or told.serves
        if anew or told.logging_error or told.foreign:
            return
        if len(self._lasting) >= _MOST_LASTING:
            self._lasting.clear()
        self._lasting[id(told)] = told

    def started_by(self, launcher: str) -> None:
        """Of several launchers the one that started the others counts."""
        self.launcher = self.signs.launchers.outer(self.launcher, launcher)

    def with_launcher(self, launcher: str) -> Environment:
        """-> the facts of a run that this launcher started too."""
        return replace(self, launcher=self.signs.launchers.outer(self.launcher, launcher))

    def sample(self, position: Position, text: str) -> bool:
        """-> whether a piece of the log that goes by unkept shows progress; `position` is that of its last line."""
        can, surely = progress.counts(progress.counting(text))
        shows = can and (surely or progress.progressed(text))
        if shows:
            self._progressed(Line(0, text, text, position))
        return shows

    def moved(self, files: dict[int, int]) -> Environment:
        """-> the facts with whole files moved in the order of the run: number of the file -> its new number."""

        def to(position: Position) -> Position:
            return position._replace(file=files.get(position.file, position.file))

        def placed(line: Line) -> Line:
            return line._replace(position=to(line.position))

        return replace(
            self,
            progress=sorted(map(to, self.progress)),
            well=sorted(map(to, self.well)),
            wound_up=sorted(map(to, self.wound_up)),
            joined=sorted(map(to, self.joined)),
            refused=sorted(map(to, self.refused)),
            serves=sorted(map(to, self.serves)),
            logging_errors=sorted(map(to, self.logging_errors)),
            version_at={name: placed(line) for name, line in self.version_at.items()},
            told=self.told.moved(to),
            spread=self.spread.moved(to),
            _progressed_of={rank: placed(line) for rank, line in self._progressed_of.items()},
            _newest=deque(map(placed, self._newest), _MOST_PROGRESS),
            _earlier=list(map(placed, self._earlier)),
            values={
                name: {key: value._replace(line=placed(value.line)) for key, value in known.items()}
                for name, known in self.values.items()
            },
            files={files.get(file, file): name for file, name in self.files.items()},
            _phases=self._phases.moved(to),
        )

    def begins_at(self, lines: Sequence[Line], said: Set[str]) -> list[int]:
        """-> the places of the lines with which a launch begins; `said`: which words of such lines they hold."""
        words = [word for word in self.signs.launchers.start_words if word in said]
        places = {at for word in words for at, line in enumerate(lines) if word in line.text}
        return [at for at in sorted(places) if self.signs.launchers.begins(lines[at].text)]

    def _narrow(self, bounds: Bounds) -> None:
        if bounds not in self._heard:
            self._heard.add(bounds)
            self._bounds = versions.narrowed([self._bounds, bounds])

    def _progressed(self, line: Line, phase: str | None = None) -> None:
        """`phase`: what the line itself says that the run did, as in `saving checkpoint at iteration 100`."""
        if self._drawn_again(line):
            return
        self._advance([line.position])
        self._steps.add([line])
        if line.number:
            self._keep([line])
            self.spread.add([line])
            self.host_steps.add([line])
        if phase is None:
            self._phases.go_on(line)

    def _advance(self, positions: list[Position]) -> None:
        """Takes the positions of lines of progress, which come in order, except samples."""
        last = self.progress[-1] if self.progress else START
        self.progress += compress(positions, map(ne, positions, [last, *positions]))
        if positions[0] < last:
            self.progress.sort()
