"""Reads Slurm's own lines in a job's log: which host and which task they are about."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line, Position
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.extractor import CLAIMED, NOTHING, Extractor, FeedResult, SharedState, taken
from torchtriage.reading.slurm_nodelist import LIST
from torchtriage.reading.slurm_nodelist import hosts as expanded

# srun: error: gpu-01: task 3: Killed · srun: error: gpu-01: tasks 0-3: Exited with exit code 1
_SRUN = lazy_regex(rf"^srun: error: ({LIST}): tasks? ([\d,-]+): (.+)")
# slurmstepd: error: *** JOB 310529 ON dgx-30 CANCELLED AT 2025-10-30T05:33:43 DUE TO PREEMPTION ***
_STEPD = lazy_regex(
    r"\b(?:slurmstepd|slurmd|srun|salloc|sbatch)(?:-([\w.-]+))?: (?:error: |Job |job |Prolog )"
    r"|^(?:\[[\d.T:-]+\] ){0,2}error: \*\*\* (?:JOB|STEP) "  # in slurmd's own log
)
# A daemon's last message in its log file, without the daemon's name: [2026-05-01T09:00:00.500] fatal: CLUSTER NAME
# MISMATCH. And in the journal: May 01 09:00:00 head-1 slurmctld[2210]: fatal: CLUSTER NAME MISMATCH.
_DAEMON = lazy_regex(
    r"(?:^|\s)(?:\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\]|(?:slurm(?:ctld|d|dbd|restd)|sackd)(?:\[\d{1,9}\])?:) (fatal: .+)"
)
# What can precede Slurm's message in a line: a progress bar or a command that did not end its line.
_BAR = lazy_regex(r'^.*[\])"](?=(?:slurmstepd|srun): )')
_ON = lazy_regex(r" ON ([\w.\[\],-]+?) (?:CANCELLED|FAILED)(?: AT ([\dT:-]+))?")
# Node failure on gpu-7 · Task launch for StepId=31.0 failed on node gpu-7: … · pmixp_p2p_send: gpu-7 [0]: pmixp_utils.c:469
_NODE = lazy_regex(rf"(?:[Nn]ode failure on|Prolog failure on node|failed on node|pmixp_\w+:) ({LIST})(?=[\s:,.]|$)")
# A program that could not be started: slurmstepd names no host, and exits with the number of the error, which srun then
# prints.
_NOT_STARTED = lazy_regex(r"\bexecve\(\): (\S+): ")
# bash-4.4$ exit: a shell that a user leaves exits with the status of its last command. This does not end a job.
_LEFT_SHELL = lazy_regex(r"(?:^|[$#>%] ?\**)(?:exit|logout)\**$")
_LEFT_WITH = lazy_regex(r"Exited with exit code (?:2|8|13)\b")  # no such file, not a program, not allowed
# Successful runs print this too.
_NOISE = lazy_regex(
    r"_is_a_lwp|STEPD TERMINATED|Unable to get current|Force Terminated|First task exited|Job step aborted"
    r"|[Jj]ob \d+ (?:queued and waiting|has been allocated|step creat)"
    # What slurmstepd can do without: the folder that was asked for, a folder for TMPDIR, its accounting of the GPUs.
    r"|couldn't chdir to .*: going to /tmp instead|\bTMPDIR \[|Setting TMPDIR to /tmp|NVML: Failed to get |acct_gather_\w+:"
    r"|_set_limit: +RLIMIT_|Can't propagate RLIMIT_"
    # What slurmstepd prints while it removes the cgroup of a step that has ended, where it finds no cgroup.conf.
    r"|_cgroup_procs_check: failed on path \(null\)|(?:cgroup\.procs for|to init root cgroup) \(null\)"
    # What srun prints if another program, such as a port scanner, connects to its port.
    r"|unpack_header: protocol_version|destroy_forward: no init"
    r"|(?:slurm_unpack_received_msg|wrap_on_data): \[[^\]]*\] .*Incompatible versions"
)


class Slurm(Extractor):
    """Reports one event for each of Slurm's lines about a failure. Failed task launches are held back until srun names
    the task."""

    name: ClassVar = "slurm"
    words: ClassVar = ("slurm", "srun", "salloc", "sbatch", "error: *** ", "fatal: ")
    sources: ClassVar = frozenset({EventSource.SLURM})
    anchors: ClassVar = (r"\b(slurmstepd|srun|slurmd)(: |\[)", r"slurmstepd: error")

    def __init__(self, launch_commands: tuple[str, ...] = ()) -> None:
        """`launch_commands`: a task that starts one of these commands is a host, not a rank."""
        self._launch_commands = launch_commands
        self._finished: list[Event] = []
        self.left: set[Position] = set()  # lines about the end of a shell, or about what srun ended itself
        self._failed = False  # whether srun reported a task that did
        self._held: list[Event] = []  # programs that could not be started, until srun names the task

    @classmethod
    def for_run(cls, shared: SharedState) -> Self:
        return cls(shared.launch_commands)

    def feed(self, line: Line, above: str = "") -> FeedResult:
        text = _BAR.sub("", line.text)
        if not any(map(text.__contains__, self.words)):
            return NOTHING
        if "fatal: " in text and (message := _DAEMON.search(line.raw[:400])):
            return FeedResult((Event.at(line, f"slurm daemon: {message[1]}", EventSource.SLURM),), True)
        stepd = _STEPD.search(text[:120])
        if stepd is None or _NOISE.search(text):
            return NOTHING
        if self._is_left_shell(text, above):
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
            self._place_failed_launch(event)
        self._finished.append(event)
        return taken(True, self._finished)

    def _is_left_shell(self, text: str, above: str) -> bool:
        """Returns whether the line says that a user left a shell that Slurm had started, that a user released an
        allocation, or that srun ended a task because another one had failed."""
        if text.endswith("has been revoked."):
            return above.startswith("salloc") and "Relinquishing job allocation" in above
        if ": Exited with exit code" in text and _LEFT_SHELL.search(above):
            return True
        found = _SRUN.match(text)
        if found and found[3] == "Terminated":
            return self._failed
        self._failed = self._failed or (found is not None and not found[3].endswith(" 143"))  # of SIGTERM
        return False

    def _place_failed_launch(self, left: Event) -> None:
        """Gives a launch that failed in only one task the place of the task that exited."""
        if len(self._held) == 1:
            held = self._held[0]
            launch = _NOT_STARTED.search(held.text)
            own = left.rank if launch and not launch[1].endswith(self._launch_commands) else None
            self._held = [replace(held, host=held.host or left.host, rank=own if held.rank is None else held.rank)]
        self._finished += self.close()

    def close(self) -> list[Event]:
        """Returns the failed launches that were held back, with the place that their own lines name."""
        held, self._held = self._held, []
        return held
