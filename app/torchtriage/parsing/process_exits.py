"""Reads how processes ended outside Python: C++ terminate, faulthandler's dump, and messages of the shell and of
spawn."""

from __future__ import annotations

import re
from dataclasses import replace
from signal import Signals
from typing import ClassVar

from torchtriage.domain.event import Event, EventSource, Where
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.extractor import Extractor, FeedResult, taken

_TERMINATE = lazy_regex(r"terminate called (?:after throwing an instance of '([^']+)'|recursively|without an active)")
# clang's form: libc++abi: terminating due to uncaught exception of type std::runtime_error: no such stage
_LIBCXX = lazy_regex(r"libc\+\+abi(?:\.dylib)?: terminat.{1,40} exception of type ([^\n]{1,200}?)(?:: (.*))?$")
_SAME_LINE = lazy_regex(r"what\(\):\s*(.+)")  # pasted without line breaks
_WHAT = lazy_regex(r"^\s*what\(\):\s*(.*)")
# subprocess.CalledProcessError: … died with <Signals.SIGKILL: 9>. / process 0 terminated with signal SIGKILL
_DIED = lazy_regex(r"died with <Signals\.(SIG\w+): \d+>|[Pp]rocess (\d{1,6}) terminated with signal (SIG\w+)")
# horovodrun: Process 0 exit with status code 137. composer: Rank 2 crashed with exit code -6, and then for each rank
# Global rank 0 (PID 71) exited with code -6; it ends ranks that still run with signals 15 and 9
_SPAWN_CODE = lazy_regex(
    r"(?:[Pp]rocess (?=\d{1,6} (?:terminated|exit))|Rank (?=\d{1,6} crashed)|Global rank (?=\d{1,6} \(PID))(\d{1,6}) "
    r"(?:terminated with exit|exit with status|crashed with exit|\(PID \d{1,9}\) exited with(?! code -(?:9|15)\b)) code "
    r"(-?[1-9]\d{0,2})\b"
)
# paddle.distributed.launch: Container rank 0 status failed cmd ['python', …] code -9 log log/workerlog.0
_CONTAINER = lazy_regex(r"^Container rank (\d{1,6}) status failed cmd \[.{0,2000}\] code (-?[1-9]\d{0,2}) log ")
# jsrun: ERROR:  One or more process (first noticed rank 17) terminated with signal 9
_NOTICED = lazy_regex(r"first noticed rank (\d{1,6})\) terminated with signal (\d{1,2})\b")
# An older form: ABORT!!! Out of all 4 trainers, the trainer process with rank=[3] was aborted. Please check its log.
_ABORTED = lazy_regex(r"the trainer process with rank=\[(\d{1,6})\] was aborted")
# A parent that prints the status of a child in Python's form: `Exit code: -9`. A process that it stopped itself is no
# failure.
_STATUS = lazy_regex(r"\b[Ee]xit(?:ed with)?(?: exit| return| status)? ?code:? ?-(\d{1,2})\b")
_STOPPED = frozenset({2, 15})
# docker compose: `worker-3 exited with code 137` · AzureML: `exited with status code 139` · Determined: `failed with
# non-zero exit code: 137` · Vertex: `exited with a non-zero status of 137` · SageMaker: `AlgorithmError: Exit Code: 139`
# mpirun and horovodrun, one line below the process name: `Exit code: 137`
# systemd: `Main process exited, code=killed, status=9/KILL`
_LEFT = lazy_regex(
    r"(?:\b(?:exited|failed|completed) with (?:a )?(?:non-?zero )?(?:(?:exit|return|status) ?)*(?:code|status)(?: of)?|AlgorithmError: Exit Code|^\s{0,2}Exit code)"
    r":? {1,4}(1[2-6]\d)\b|code=(?:killed|dumped), status=(\d{1,2})/[A-Z]+"
)
# GNU time: `Command terminated by signal 9` · supervisord: `exited: train (terminated by SIGKILL; not expected)` · pm2:
# `exited with code [0] via signal [SIGKILL]` · coredumpctl: `Signal: 11 (SEGV)` · systemd-coredump: `Process 4471 (python)
# of user 1000 terminated abnormally with signal 11/SEGV, processing...` · HTCondor: `Abnormal termination (signal 9)` · sacct:
# a row that ends in `FAILED      0:9`
_BY_SIGNAL = lazy_regex(
    r"(?:\bCommand terminated by|\((?:python[\d.]*|pt_\w+)\) of user \d+ terminated abnormally with) signal (\d{1,2})\b|\(terminated by (SIG[A-Z]+)(?: \(core dumped\))?; not expected\)"
    r"|\bvia signal \[(SIG[A-Z]+)\]|^\s*Signal: (\d{1,2}) \([A-Z]{3,6}\)"
    r"|\bAbnormal termination \(signal (\d{1,2})\)|^ *\d+(?:_\d+)?(?:\.\w+|\+\d+\.?\w*)? .{1,120} FAILED +0:(\d{1,2}) *$"
)
# The process that exited first, next to its `Exit code: 1`. mpirun: `Process name: [[29973,1],3]`,
# prterun: `Process name: [prterun-gpu-1-4711@1,3]`, horovodrun: `Process name: 3`, its elastic driver, with host and local rank: `Process name: gpu-1[3]`.
_NAMED = lazy_regex(
    r"(?:^\s{0,8}|\|\| )Process name: {1,4}(?:(?:\[\[?[\w.@,-]{1,200}[,\]]{1,2})?(?P<rank>\d{1,6})\]?|(?P<host>[\w.-]{1,200})\[(?P<local>\d{1,3})\])\s*$"
)
_ITS_STATUS = lazy_regex(r"(?:^\s{0,8}|\|\| )Exit code: {1,4}([1-9]\d{0,2})\s*$")
# The last message of the old launcher names the command of its last worker, even if another worker failed.
_LAST_WORKER = lazy_regex(r"CalledProcessError: Command .{0,400}--local[_-]rank=(\d{1,3})\b")
_NAMES = {int(signal): signal.name for signal in Signals}
_OPEN_FOR = 4  # lines; what() must follow terminate within them


class ProcessExits(Extractor):
    """Reports one event for each uncaught C++ exception and for each exit status or signal, in a fixed form of text."""

    name: ClassVar = "process exits"
    words: ClassVar = ("terminate called", "died with <Signals.", "terminated with", "exit with status", "crashed with exit",
             "Container rank", "xit code", "xitcode", "exited", "Exited with", "CalledProcessError",
             "trainer process with rank", "non-zero exit", "completed with exit", "Exit Code: ", "Process name: ",
             "terminated by ", "terminated abnormally", "libc++abi", "FAILED  ",
             "Abnormal termination", "via signal [", " Signal: ")  # fmt: skip
    sources: ClassVar = frozenset({EventSource.PROCESS_EXIT})
    anchors: ClassVar = (r"died with <Signals", r"terminated with (signal|exit code)")
    wide_anchors: ClassVar = (r"terminate called",)

    def __init__(self) -> None:
        self._terminated: dict[str, Line] = {}
        # The last line with a process's name or status, and which of the two it contained.
        self._left_first: tuple[Line, re.Match[str] | None, re.Match[str] | None] | None = None
        self._finished: list[Event] = []
        self.workers: int | None = None  # on one host, if a launcher gives it

    def feed(self, line: Line, above: str = "") -> FeedResult:
        return taken(self._read(line), self._finished)

    def _read(self, line: Line) -> bool:
        text = line.text
        first_line = self._terminated.get(line.stream)
        if first_line is not None and (what := _WHAT.match(text)):
            self._cpp_exception(first_line, line, what[1])
            return True
        if first_line is not None and line.position.lines_below(first_line.position) > _OPEN_FOR:
            self._cpp_exception(first_line, None, "")
        if "terminate called" in text and _TERMINATE.search(text):
            self._terminated[line.stream] = line
            if same := _SAME_LINE.search(text):
                self._cpp_exception(line, None, same[1])
            return True
        if ("Process name" in text or "Exit code" in text) and self._merge_with_previous(line, text):
            return False
        if "trainer process with rank" in text and (aborted := _ABORTED.search(text)):
            self._add_exit(line, "1", 1, int(aborted[1]))
        elif "ode" in text or " with " in text or "exited" in text:
            self._exit_status(line, text)
        if "ignal" in text or "terminated by" in text or "libc++abi" in text or "FAILED  " in text:
            self._by_signal(line, text)
        if "CalledProcessError" in text and (last := _LAST_WORKER.search(text)):
            self.workers = int(last[1]) + 1
        return False

    def _merge_with_previous(self, line: Line, text: str) -> bool:
        """Returns whether this line and the line before it made an event together: one names a process, the other its
        status."""
        name, status = _NAMED.search(text), _ITS_STATUS.search(text)
        before, self._left_first = self._left_first, (line, name, status)
        if before is None or line.position.lines_below(before[0].position) > 1:
            return False
        name, status = name or before[1], status or before[2]
        if name is None or status is None:
            return False
        code, rank = int(status[1]), name["rank"]
        signal = _NAMES.get(code - 128)
        self._add_exit(line, f"{128 - code} {signal}" if signal else str(code), 128 - code if signal else code,
                     int(rank) if rank else None)  # fmt: skip
        if rank is None:
            self._finished[-1] = replace(self._finished[-1], host=name["host"], local_rank=int(name["local"]))
        return True

    def _exit_status(self, line: Line, text: str) -> None:
        """Adds the exit status of a process as the program that waited for it printed it."""
        if " with " in text and (died := _DIED.search(text)):
            self._signal(line, died[1] or died[3], int(died[2]) if died[2] else None)
        if "noticed rank" in text and (noticed := _NOTICED.search(text)):
            self._process_left(line, -int(noticed[2]), int(noticed[1]))
        if " code " in text and (left := _SPAWN_CODE.search(text) or _CONTAINER.match(text)):
            self._process_left(line, int(left[2]), int(left[1]))
        elif "ode" in text and "local_rank" not in text and (status := _STATUS.search(text)):
            self._status(line, int(status[1]))
        if (" with " in text or "xit Code" in text or "Exit code" in text or "exited" in text) and (
            left := _LEFT.search(text)
        ):
            self._status(line, int(left[2] or int(left[1]) - 128))

    def _by_signal(self, line: Line, text: str) -> None:
        """Adds a signal that a waiting program printed by name or number, separate from an exit code; or clang's
        message about an exception."""
        if thrown := _LIBCXX.search(text):
            told_of = f"terminate called: {thrown[1]}: {thrown[2] or ''}"
            self._finished.append(Event.at(line, told_of, EventSource.PROCESS_EXIT))
        if not (found := _BY_SIGNAL.search(text)):
            return
        number, name = found[1] or found[4] or found[5] or found[6], found[2] or found[3]
        if number:
            self._status(line, int(number))
        elif name not in ("SIGTERM", "SIGINT"):
            self._signal(line, name, None)

    def continues(self, stream: str) -> bool:
        return stream in self._terminated

    def close(self) -> tuple[Event, ...]:
        """Returns the C++ exceptions whose what() is not in the log."""
        for line in list(self._terminated.values()):
            self._cpp_exception(line, None, "")
        return taken(False, self._finished).events

    def _cpp_exception(self, first_line: Line, what: Line | None, message: str) -> None:
        del self._terminated[first_line.stream]
        found = _TERMINATE.search(first_line.text)
        text = f"terminate called: {found[1] if found and found[1] else 'std::exception'}: {message}"
        self._finished.append(
            replace(
                Event.at(first_line, text, EventSource.PROCESS_EXIT),
                lines=(what, first_line) if what else (first_line,),
            )
        )

    def _signal(self, line: Line, name: str, rank: int | None) -> None:
        try:
            code = -int(Signals[name])
        except KeyError:
            return
        self._add_exit(line, f"{code} {name}", code, rank)

    def _status(self, line: Line, number: int) -> None:
        if number in _NAMES and number not in _STOPPED:
            self._signal(line, _NAMES[number], None)

    def _process_left(self, line: Line, code: int, rank: int) -> None:
        """Adds a process that ended with a status in Python's form: minus the number of the signal."""
        name = f" {_NAMES[-code]}" if -code in _NAMES else ""
        self._add_exit(line, f"{code}{name}", code, rank)

    def _add_exit(self, line: Line, status: str, code: int, rank: int | None) -> None:
        text = f"exitcode {status}" + (f" rank {rank}" if rank is not None else "")
        event = Event.at(line, text, EventSource.PROCESS_EXIT, Where.EXIT)
        self._finished.append(replace(event, rank=rank if line.rank is None else line.rank, exit_code=code))
