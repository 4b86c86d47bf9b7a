"""Slurm's own lines in a job's log: which host and which task they speak of."""

from __future__ import annotations

import re
from dataclasses import replace

from app.domain.event import Event
from app.domain.line import Line

# srun: error: gpu-01: task 3: Killed · srun: error: gpu-01: tasks 0-3: Exited with exit code 1
_SRUN = re.compile(r"^srun: error: ([\w.-]+): tasks? ([\d,-]+): (.+)")
# slurmstepd: error: *** JOB 310529 ON dgx-30 CANCELLED AT 2025-10-30T05:33:43 DUE TO PREEMPTION ***
_STEPD = re.compile(r"\b(?:slurmstepd|slurmd|srun|salloc|sbatch)(?:-[\w.]+)?: (?:error: |Job |job )")
_ON = re.compile(r" ON ([\w.\[\],-]+?) (?:CANCELLED|FAILED)(?: AT ([\dT:-]+))?")
_NODE = re.compile(r"[Nn]ode failure on ([\w.-]+)")
# Printed at the end of good runs as well.
_NOISE = re.compile(
    r"_is_a_lwp|STEPD TERMINATED|Unable to get current|Force Terminated|First task exited|Job step aborted"
)


class Scheduler:
    """Feed it every kept line; each line of Slurm's that tells of a failure becomes an event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def feed(self, line: Line) -> bool:
        text = line.text
        if ": " not in text or not _STEPD.search(text[:120]) or _NOISE.search(text):
            return False
        host, rank, time = line.host, line.rank, line.time
        if found := _SRUN.match(text):
            host = found[1]
            rank = int(found[2]) if found[2].isdigit() and len(found[2]) < 7 else rank
        if on := _ON.search(text):
            host, time = on[1] if "[" not in on[1] else host, on[2] or time
        if node := _NODE.search(text):
            host = node[1]
        self.events.append(replace(Event.at(line, text, "slurm"), host=host, rank=rank, time=time))
        return True

    def close(self) -> None:
        """Nothing stays open."""
