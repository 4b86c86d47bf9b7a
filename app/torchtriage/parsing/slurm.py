"""Slurm's own lines in a job's log: which host and which task they speak of."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line, Position
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.extractor import CLAIMED, NOTHING, Extractor, SharedState, Taken, taken
from torchtriage.reading.slurm_nodelist import LIST
from torchtriage.reading.slurm_nodelist import hosts as expanded

# srun: error: gpu-01: task 3: Killed · srun: error: gpu-01: tasks 0-3: Exited with exit code 1
_SRUN = lazy_regex(rf"^srun: error: ({LIST}): tasks? ([\d,-]+): (.+)")
# slurmstepd: error: *** JOB 310529 ON dgx-30 CANCELLED AT 2025-10-30T05:33:43 DUE TO PREEMPTION ***
_STEPD = lazy_regex(
    r"\b(?:slurmstepd|slurmd|srun|salloc|sbatch)(?:-([\w.-]+))?: (?:error: |Job |job |Prolog )"
    r"|^(?:\[[\d.T:-]+\] ){0,2}error: \*\*\* (?:JOB|STEP) "  # in slurmd's own log
)
# A daemon's last words, in its log file, where no line says whose it is: [2026-05-01T09:00:00.500] fatal: CLUSTER NAME
# MISMATCH. And in the journal: May 01 09:00:00 head-1 slurmctld[2210]: fatal: CLUSTER NAME MISMATCH.
_DAEMON = lazy_regex(
    r"(?:^|\s)(?:\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\]|(?:slurm(?:ctld|d|dbd|restd)|sackd)(?:\[\d{1,9}\])?:) (fatal: .+)"
)
# What stands before Slurm's word in a line: a progress bar, or a command, that had not ended it.
_BAR = lazy_regex(r'^.*[\])"](?=(?:slurmstepd|srun): )')
_ON = lazy_regex(r" ON ([\w.\[\],-]+?) (?:CANCELLED|FAILED)(?: AT ([\dT:-]+))?")
# Node failure on gpu-7 · Task launch for StepId=31.0 failed on node gpu-7: … · pmixp_p2p_send: gpu-7 [0]: pmixp_utils.c:469
_NODE = lazy_regex(rf"(?:[Nn]ode failure on|Prolog failure on node|failed on node|pmixp_\w+:) ({LIST})(?=[\s:,.]|$)")
# What could not be started: slurmstepd says no host, and leaves with the error's number, which srun then tells.
_NOT_STARTED = lazy_regex(r"\bexecve\(\): (\S+): ")
# bash-4.4$ exit: the status of a shell that somebody leaves is that of its last command, and ends nothing.
_LEFT_SHELL = lazy_regex(r"(?:^|[$#>%] ?\**)(?:exit|logout)\**$")
_LEFT_WITH = lazy_regex(r"Exited with exit code (?:2|8|13)\b")  # no such file, no program, not allowed
# Printed in good runs as well.
_NOISE = lazy_regex(
    r"_is_a_lwp|STEPD TERMINATED|Unable to get current|Force Terminated|First task exited|Job step aborted"
    r"|[Jj]ob \d+ (?:queued and waiting|has been allocated|step creat)"
    # What slurmstepd makes do without: the folder that was asked for, a folder for TMPDIR, its accounting of the GPUs.
    r"|couldn't chdir to .*: going to /tmp instead|\bTMPDIR \[|Setting TMPDIR to /tmp|NVML: Failed to get |acct_gather_\w+:"
    r"|_set_limit: +RLIMIT_|Can't propagate RLIMIT_"
    # What srun says to anyone who knocks at its port and speaks another tongue, a scanner for one.
    r"|unpack_header: protocol_version|destroy_forward: no init"
    r"|(?:slurm_unpack_received_msg|wrap_on_data): \[[^\]]*\] .*Incompatible versions"
)


class Slurm(Extractor):
    """One event for each of Slurm's lines that reports a failure. Task launches that failed are held back until srun
    reports which task."""

    name: ClassVar = "slurm"
    words: ClassVar = ("slurm", "srun", "salloc", "sbatch", "error: *** ", "fatal: ")
    sources: ClassVar = frozenset({EventSource.SLURM})
    anchors: ClassVar = (r"\b(slurmstepd|srun|slurmd)(: |\[)", r"slurmstepd: error")

    def __init__(self, launch_commands: tuple[str, ...] = ()) -> None:
        """`launch_commands`: a task that starts one of these is a host, not a rank."""
        self._launch_commands = launch_commands
        self._finished: list[Event] = []
        self.left: set[Position] = set()  # of the lines that tell of a shell's end, or of what srun ended itself
        self._failed = False  # whether srun told of a task that did
        self._held: list[Event] = []  # of what could not be started, until srun says where

    @classmethod
    def for_run(cls, shared: SharedState) -> Self:
        return cls(shared.launch_commands)

    def feed(self, line: Line, above: str = "") -> Taken:
        text = _BAR.sub("", line.text)
        if not any(map(text.__contains__, self.words)):
            return NOTHING
        if "fatal: " in text and (told := _DAEMON.search(line.raw[:400])):
            return Taken((Event.at(line, f"slurm daemon: {told[1]}", EventSource.SLURM),), True)
        stepd = _STEPD.search(text[:120])
        if stepd is None or _NOISE.search(text):
            return NOTHING
        if self._left(text, above):
            self.left.add(line.position)
            return CLAIMED
        rank, time = line.rank, line.time
        named = stepd[1]
        if found := _SRUN.match(text):
            named = found[1]
            rank = int(found[2]) if found[2].isdigit() and len(found[2]) < 7 else rank
        if on := _ON.search(text):
            named, time = on[1], on[2] or time
        if node := _NODE.search(text):
            named = node[1]
        hosts = expanded(named) if named else ()
        host = hosts[0] if len(hosts) == 1 else line.host
        event = replace(Event.at(line, text, EventSource.SLURM), host=host, rank=rank, time=time)
        if _NOT_STARTED.search(text):
            self._held.append(event)
            return CLAIMED
        if found and _LEFT_WITH.match(found[3]):
            self._release(event)
        self._finished.append(event)
        return taken(True, self._finished)

    def _left(self, text: str, above: str) -> bool:
        """-> whether the line tells that somebody left a shell that Slurm had started, or gave an allocation back, or
        that srun ended a task because another one had failed."""
        if text.endswith("has been revoked."):
            return above.startswith("salloc") and "Relinquishing job allocation" in above
        if ": Exited with exit code" in text and _LEFT_SHELL.search(above):
            return True
        found = _SRUN.match(text)
        if found and found[3] == "Terminated":
            return self._failed
        self._failed = self._failed or (found is not None and not found[3].endswith(" 143"))  # of SIGTERM
        return False

    def _release(self, left: Event) -> None:
        """Places what one task alone could not start where the task left."""
        if len(self._held) == 1:
            held = self._held[0]
            told = _NOT_STARTED.search(held.text)
            own = left.rank if told and not told[1].endswith(self._launch_commands) else None
            self._held = [replace(held, host=held.host or left.host, rank=own if held.rank is None else held.rank)]
        self._finished += self.close()

    def close(self) -> list[Event]:
        """-> the failed launches that were held back, where their own lines place them."""
        held, self._held = self._held, []
        return held
