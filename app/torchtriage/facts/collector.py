"""Collects the facts of a run from every kept line: launcher, world size, hosts, versions, progress and phases."""

from __future__ import annotations

from bisect import bisect_right
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
from torchtriage.facts.line_facts import ENOUGH_OF_FIELD, MAX_LENGTH, LineRegexes, TextFacts
from torchtriage.facts.line_forms import KeptLines
from torchtriage.facts.phases import Phases, Steps
from torchtriage.facts.progress import SpreadLines
from torchtriage.facts.registry import FactValue
from torchtriage.facts.time_range import TimeRange
from torchtriage.facts.versions import Bounds
from torchtriage.reading.prefixes.paths import FileOrigin, writer_of

MAX_HOSTS = 4096
_MAX_LASTING = 4096
NEWEST = 2048  # number of values kept of one line fact: enough for files of 1024 ranks, started and written
# (attempt, value, whether it was seen before). Hundreds of ranks may print the same value; the first and the newest
# line of it are kept.
_ValueKey = tuple[int, Any, bool]
_MAX_PROGRESS = 16  # number of newest progress lines that are kept
_MAX_EARLIER = 4096  # number of progress lines of earlier attempts that are kept
_MIN_PROGRESS_OF_LOOP = 2  # number of progress lines that a loop without a step prints: an empty bar, and a summary


@dataclass(slots=True)
class CollectedFacts:
    """Collects facts. Call `feed` with every kept line, `note` with the regexes that lines match, and `sample` with
    pieces of lines that are not kept. It never claims a line.

    These hold positions of lines: `progress` shows progress, `good_ends` says that the run ended well, `shutdowns` is printed
    by clean-up code (also after a failure), `waits_over` reports a passed barrier or a placed pod, `refusals` is a server's
    reply to a request that it could not accept, `servers_up` says that a server is up, `logging_errors` says that a logger
    could not write. `step` is the last step of the file with the most progress. `exit_code` is the last nonzero status
    in a line. `idle_at` is the last line that says that a loop had nothing to train on. `good_ends` has no line below it,
    unless steps show there.
    """

    regexes: LineRegexes
    launcher: str | None = None
    world_size: int | None = None
    exit_code: int | None = None
    hosts: dict[str, None] = field(default_factory=dict)
    host_of: dict[int, str] = field(default_factory=dict)  # rank → host
    executed_on: set[str] = field(default_factory=set)  # all hosts of the job, from the batch system
    files: dict[int, FileOrigin] = field(default_factory=dict)  # in a run of several files, by file number
    versions: dict[str, str] = field(default_factory=dict)
    version_at: dict[str, Line] = field(default_factory=dict)  # package → the line that prints its version
    span: TimeRange = field(default_factory=TimeRange)
    progress: list[Position] = field(default_factory=list)
    good_ends: list[Position] = field(default_factory=list)
    shutdowns: list[Position] = field(default_factory=list)
    waits_over: list[Position] = field(default_factory=list)
    refusals: list[Position] = field(default_factory=list)
    servers_up: list[Position] = field(default_factory=list)
    logging_errors: list[Position] = field(default_factory=list)
    idle_at: Position | None = None
    other_program_lines: int = 0
    on_gpus: int = 0  # number of foreign lines from programs that use GPUs
    training_lines: int = 0
    device_only_lines: int = 0  # number of training lines that only mention devices
    batch_system_lines: int = 0  # number of lines that only a batch system prints
    training_word_kinds: int = 0  # kinds of words about training, as a bit mask
    values: dict[str, dict[_ValueKey, FactValue]] = field(
        default_factory=dict
    )  # the newest values of each line fact, by name
    deferred_lines: KeptLines = field(default_factory=KeptLines)  # lines that are read if the run failed
    spread: SpreadLines = field(default_factory=SpreadLines)  # progress lines from the start to the end of the run
    host_steps: HostSteps = field(default_factory=HostSteps)  # the first progress lines of each host
    _progressed_of: dict[int, Line] = field(default_factory=dict)  # rank → its last progress line
    # the last progress lines of any rank
    _newest: deque[Line] = field(default_factory=lambda: deque(maxlen=_MAX_PROGRESS))
    _earlier: list[Line] = field(default_factory=list)  # the same for earlier attempts
    _bars: dict[str, tuple[str, str]] = field(default_factory=dict)  # stream → its last progress bar, up to the count
    _attempt: int = 0
    _steps: Steps = field(default_factory=Steps)
    _phases: Phases = field(default_factory=Phases)
    _bounds: Bounds = (None, None)
    _lasting: dict[int, TextFacts] = field(default_factory=dict)  # values that need to be noted only once, by id()
    _heard: set[Bounds] = field(default_factory=lambda: {(None, None)})

    @property
    def step(self) -> int | None:
        return self._steps.read()

    @property
    def progress_of(self) -> dict[int, Position]:
        """Rank → position of its last progress line, for ranks that label their lines."""
        return {rank: line.position for rank, line in self._progressed_of.items()}

    @property
    def progress_lines(self) -> Iterator[Line]:
        """The last progress lines of the run, of each rank and of each attempt."""
        known = (*self._earlier, *self._progressed_of.values(), *self._newest)
        yield from {(line.position, line.text): line for line in known}.values()

    @property
    def of_another_program(self) -> bool:
        """Whether more lines have the form of another program's output than mention training, and few mention
        training."""
        return self.training_lines - (self.device_only_lines if self.on_gpus else 0) < min(
            self.other_program_lines, ENOUGH_OF_FIELD
        )

    @property
    def settled(self) -> frozenset[int]:
        """The indexes of the regexes whose further matches would add nothing."""
        enough = self.training_lines - self.device_only_lines >= ENOUGH_OF_FIELD
        known = self.regexes.training_regexes if enough and self.surely_training else frozenset()
        return known | {self.regexes.path} if "python" in self.versions else known

    @property
    def surely_training(self) -> bool:
        """Whether a line contains something that only training has, or lines contain two kinds of words about a
        training loop."""
        return self.training_word_kinds.bit_count() > 1

    @property
    def torch_range(self) -> str | None:
        """The torch versions that are consistent with the log's message forms, as `>=2.3,<2.5`."""
        by_python = versions.bounds_by_python(self.versions.get("python"))
        return versions.range_text(versions.intersection([self._bounds, by_python])) or versions.range_text(
            self._bounds
        )

    def phase_at(self, position: Position) -> str | None:
        """Returns the last phase that the same file showed up to the line at `position`."""
        return self._phases.at(position)

    def phase_before(self, event: Event) -> str | None:
        """Returns the last phase that the file of an event showed before it, or else the last phase in other files of
        its process, such as stdout.log."""
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
        """Adds the times of many lines."""
        self._steps.read()
        self.span.feed([line.time for line in lines if line.time is not None])

    def note(self, line: Line, regexes: tuple[int, ...], claimed: bool) -> None:
        """Adds the facts of a line that matches the regexes with these indexes.

        `claimed` is true if the line belongs to a traceback or report. There, `step = 5` is code and not progress.
        """
        form, text = self.regexes.form_of(regexes), line.text[:MAX_LENGTH]
        facts = self.regexes.facts_of(text, regexes) if form.is_read else form.facts
        if form.says_more and self._lasting.get(id(facts)) is not facts:
            self._note(line, facts, claimed)
            self._remember(facts)
        self.training_lines += facts.is_training_line
        self.device_only_lines += facts.device_only
        self.batch_system_lines += facts.batch_system_only
        self.training_word_kinds |= facts.training_word_kinds
        if form.counts and not claimed and (form.surely or progress.progressed(text)):
            self._progressed(line, facts.phase)
            rank = line.rank if line.rank is not None else progress.writer(text)
            if rank is not None:
                self._progressed_of[rank] = line

    def read(self, line: Line, bits: int) -> None:
        """Adds the line facts in `bits` of a line."""
        for number, fact in enumerate(self.regexes.line_facts):
            if not bits >> number & 1:
                continue
            if fact.read is None:
                self.deferred_lines.add(line)
            elif (value := fact.read(line.text[:MAX_LENGTH])) is not None:
                self._add_value(fact.name, FactValue(line, value))

    def _add_value(self, name: str, value: FactValue) -> None:
        """Adds a value of a line fact. Values from lines that are not kept arrive after those of later lines."""
        known, attempt = self.values.setdefault(name, {}), value.line.attempt
        first, newest = (attempt, value.value, False), (attempt, value.value, True)
        before = known.setdefault(first, value)
        if before is value:
            if len(known) >= 2 * NEWEST:
                in_order = sorted(known.items(), key=lambda one: one[1].line.position)
                self.values[name] = dict(in_order[-NEWEST:])
            return
        if value.line.position < before.line.position:
            known[first], value = value, before
        last = known.get(newest)
        if last is None or last.line.position < value.line.position:
            known[newest] = value

    def note_progress(self, lines: Sequence[Line], regexes: Sequence[tuple[int, ...]]) -> None:
        """Adds lines of one file that show at most that the run continues. `regexes` has the regex indexes of each
        line."""
        counting: set[tuple[int, ...]] = set()
        for numbers, often in Counter(regexes).items():
            form = self.regexes.form_of(numbers)
            self.training_lines += often * form.facts.is_training_line
            self.device_only_lines += often * form.facts.device_only
            self.batch_system_lines += often * form.facts.batch_system_only
            self.training_word_kinds |= form.facts.training_word_kinds
            if form.counts:
                counting.add(numbers)
        if counting.issuperset(regexes):  # true for most logs
            self._count(list(lines))
        elif counting:
            self._count([line for line, numbers in zip(lines, regexes, strict=True) if numbers in counting])

    def _count(self, lines: list[Line]) -> None:
        """Adds progress lines."""
        texts = "\n".join([line.text for line in lines])
        if progress.BAR in texts:
            lines = [line for line in lines if not self._is_redrawn(line)]
        if not lines:
            return
        self._advance([line.position for line in lines])
        self._steps.add(lines)
        self._keep(lines)
        self.spread.add(lines)
        self.host_steps.add(lines)
        for line in lines:
            if self._phases.enter_training(line):
                break
        ranks = [line.rank for line in lines]
        if "rank" in texts.lower():
            ranks = [
                progress.writer(line.text) if rank is None else rank for rank, line in zip(ranks, lines, strict=True)
            ]
        if ranks.count(None) < len(ranks):
            self._progressed_of |= {rank: line for rank, line in zip(ranks, lines, strict=True) if rank is not None}

    def _is_redrawn(self, line: Line) -> bool:
        """Returns whether the line is the previous progress bar, printed again at the same step. A bar whose time fell
        belongs to a loop that began again."""
        bar = progress.bar(line.text)
        if bar is None:
            return False
        taken = progress.elapsed(line.text)
        last, before = self._bars.get(line.stream, ("", ""))
        self._bars[line.stream] = bar, taken
        return last == bar and taken >= before

    def _keep(self, lines: Sequence[Line]) -> None:
        """Keeps the last of these progress lines."""
        if lines[-1].attempt != self._attempt:
            if len(self._earlier) < _MAX_EARLIER:
                self._earlier += [*self._progressed_of.values(), *self._newest]
            self._attempt = lines[-1].attempt
        self._newest.extend(lines[-_MAX_PROGRESS:])

    @property
    def last_progress_lines(self) -> dict[int, Line]:
        """The last progress line of each rank that labels its lines."""
        return self._progressed_of

    def last_progress(self, rank: int) -> Position | None:
        """Returns the position of a rank's last progress line, or None."""
        line = self._progressed_of.get(rank)
        return line.position if line else None

    def label(self, regexes: tuple[int, ...]) -> None:
        """Adds what the start of a line shows, with its label: the form of a rank's label depends on the torch
        version."""
        self._narrow(self.regexes.form_of(regexes).facts.bounds)

    def at(self, host: str, rank: int | None) -> None:
        """Adds a host of the run and the rank that ran on it. Ignores texts that are not host names."""
        if host_name(host) is None:
            return
        if host not in self.hosts and len(self.hosts) < MAX_HOSTS:
            self.hosts[host] = None
        if rank is not None and rank not in self.host_of:
            self.host_of[rank] = host

    def _note(self, line: Line, facts: TextFacts, claimed: bool) -> None:
        position = line.position
        if facts.launcher:
            self.started_by(facts.launcher)
        self.world_size = self.world_size or facts.world_size
        self.exit_code = facts.exit_code or self.exit_code
        for name, version in facts.versions:
            known = self.versions.setdefault(name, version)
            self.version_at.setdefault(name, line)
            if version.startswith(f"{known}."):
                self.versions[name] = version
                self.version_at[name] = line
        for host in facts.hosts:
            self.at(host, None)
        for rank, host in facts.placed:
            self.at(host, rank)
        self.executed_on.update(filter(host_name, facts.executed))
        self._narrow(facts.bounds)
        if facts.phase and not claimed:
            self._phases.enter(position, facts.phase)
        also = (
            (self.refusals, facts.refusal),
            (self.servers_up, facts.server_up),
            (self.logging_errors, facts.logging_error),
        )
        self.idle_at = position if facts.idle else self.idle_at
        matched = (
            (self.good_ends, facts.good_end and self._has_trained()),
            (self.shutdowns, facts.shutdown),
            (self.waits_over, facts.wait_over),
        )
        for positions, shows in (*matched, *also):
            if shows:
                positions.append(position)
        self.other_program_lines += facts.other_program
        self.on_gpus += facts.on_gpus

    def _has_trained(self) -> bool:
        """Returns whether the run did not say that a loop had nothing to train on, or shows steps below that."""
        if self.idle_at is None:
            return True
        return len(self.progress) - bisect_right(self.progress, self.idle_at) > _MIN_PROGRESS_OF_LOOP

    def _remember(self, facts: TextFacts) -> None:
        """Adds the facts of a line. Ranks print the same lines, so facts that a repetition does not change are added
        only once."""
        changes = (
            facts.phase
            or facts.exit_code
            or facts.good_end
            or facts.shutdown
            or facts.wait_over
            or facts.refusal
            or facts.server_up
        )
        if changes or facts.logging_error or facts.idle or facts.other_program:
            return
        if len(self._lasting) >= _MAX_LASTING:
            self._lasting.clear()
        self._lasting[id(facts)] = facts

    def started_by(self, launcher: str) -> None:
        """Sets the launcher. If several launchers are found, the one that started the others is kept."""
        self.launcher = self.regexes.launchers.outer(self.launcher, launcher)

    def with_launcher(self, launcher: str) -> CollectedFacts:
        """Returns the facts with this launcher, which also started the run."""
        return replace(self, launcher=self.regexes.launchers.outer(self.launcher, launcher))

    def sample(self, position: Position, text: str) -> bool:
        """Returns whether a piece of the log that is not kept shows progress. `position` is that of its last line."""
        can, surely = progress.counts(progress.counting(text))
        shows = can and (surely or progress.progressed(text))
        if shows:
            self._progressed(Line(0, text, text, position))
        return shows

    def moved(self, files: dict[int, int]) -> CollectedFacts:
        """Returns the facts with file numbers changed to the order of the run. `files` maps old numbers to new ones."""

        def to(position: Position) -> Position:
            return position._replace(file=files.get(position.file, position.file))

        def placed(line: Line) -> Line:
            return line._replace(position=to(line.position))

        return replace(
            self,
            progress=sorted(map(to, self.progress)),
            good_ends=sorted(map(to, self.good_ends)),
            shutdowns=sorted(map(to, self.shutdowns)),
            waits_over=sorted(map(to, self.waits_over)),
            refusals=sorted(map(to, self.refusals)),
            servers_up=sorted(map(to, self.servers_up)),
            logging_errors=sorted(map(to, self.logging_errors)),
            idle_at=None if self.idle_at is None else to(self.idle_at),
            version_at={name: placed(line) for name, line in self.version_at.items()},
            deferred_lines=self.deferred_lines.moved(to),
            spread=self.spread.moved(to),
            _progressed_of={rank: placed(line) for rank, line in self._progressed_of.items()},
            _newest=deque(map(placed, self._newest), _MAX_PROGRESS),
            _earlier=list(map(placed, self._earlier)),
            values={
                name: {key: value._replace(line=placed(value.line)) for key, value in known.items()}
                for name, known in self.values.items()
            },
            files={files.get(file, file): name for file, name in self.files.items()},
            _phases=self._phases.moved(to),
        )

    def begins_at(self, lines: Sequence[Line], present: Set[str]) -> list[int]:
        """Returns the indexes of the lines that start a launch. `said` has the words of such lines that these lines
        contain."""
        words = [word for word in self.regexes.launchers.start_words if word in present]
        places = {at for word in words for at, line in enumerate(lines) if word in line.text}
        return [at for at in sorted(places) if self.regexes.launchers.begins(lines[at].text)]

    def _narrow(self, bounds: Bounds) -> None:
        if bounds not in self._heard:
            self._heard.add(bounds)
            self._bounds = versions.intersection([self._bounds, bounds])

    def _progressed(self, line: Line, phase: str | None = None) -> None:
        """Adds a progress line. `phase` is the phase that the line itself shows, as in `saving checkpoint at iteration
        100`."""
        if self._is_redrawn(line):
            return
        self._advance([line.position])
        self._steps.add([line])
        if line.number:
            self._keep([line])
            self.spread.add([line])
            self.host_steps.add([line])
        if phase is None:
            self._phases.enter_training(line)

    def _advance(self, positions: list[Position]) -> None:
        """Adds the positions of progress lines. They are sorted, except for samples."""
        last = self.progress[-1] if self.progress else START
        self.progress += compress(positions, map(ne, positions, [last, *positions]))
        if positions[0] < last:
            self.progress.sort()
