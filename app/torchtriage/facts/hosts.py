"""Extracts the hosts of a run, and which rank ran on which, as schedulers, launchers and NCCL print them."""

from __future__ import annotations

from torchtriage.facts.scan_regex import MatchedRegexes, ScanRegex
from torchtriage.reading.slurm_nodelist import LIST, hosts, numbers

# SLURM_JOB_NODELIST=gpu[001-004] · NodeList=gpu[001-004] BatchHost=gpu001 · *** JOB 31 ON gpu001 CANCELLED · srun: error: gpu[001-002]: tasks 0-15:
_LISTED = ScanRegex(
    r"(?:\b(?:SLURM_(?:JOB_|STEP_)?NODELIST|SLURMD_NODENAME|NodeList|BatchHost)\s?[=:]\s?['\"]?|\*\*\* (?:JOB|STEP) \S{1,40} ON "
    rf"|^srun: error: (?=\S{{1,400}}: tasks? \d))({LIST})"
)
# A field of a report · gpu-7:41:41 [0] NCCL INFO
_SINGLE = ScanRegex(
    r"^\s+host\s{2,}: ([\w.-]+)|^([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL |\bslurmstepd-([\w.-]+): error: "
)
_TASKS = ScanRegex(r"^srun: error: ([\w.-]+): tasks? ([\d,-]+):")
_COMM = ScanRegex(r"^([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL INFO .{0,120}\brank (\d{1,6}) n[Rr]anks \d+")
# Messages of batch systems other than Slurm about the whole job: LSF's report with one host per line; PBS; Grid
# Engine's mail; SageMaker
_EXECUTED = ScanRegex(
    r"^(?:Job was executed on host\(s\) <(?:\d+\*)?| {10,}<\d+\*)([\w.-]+)>|^\s*(?:exec_host\s*=|Exec host:)\s*((?:[\w.-]+/[\d*]+\+?)+)"
    r"|^\s*Execution host: ([\w.-]+)$|^ Host {2,}= ([\w.-]+)$|(?:\"current_host\": ?\"|\bSM_CURRENT_HOST=)(algo-\d+)"
)
REGEXES = (_LISTED, _SINGLE, _TASKS, _COMM, _EXECUTED)
_NOBODY = frozenset({"localhost", "None", "null", "n", "N"})


def named(text: str, matched: MatchedRegexes) -> tuple[str, ...]:
    """Returns the hosts of the run that a line names."""
    names: list[str] = []
    if _LISTED in matched:
        names += [name for found in _LISTED.compiled.finditer(text) for name in hosts(found[1])]
    if _SINGLE in matched and (one := _SINGLE.compiled.search(text)):
        names.append(one[1] or one[2] or one[3])
    return tuple(name for name in (*names, *executed(text, matched)) if name not in _NOBODY)


def executed(text: str, matched: MatchedRegexes) -> tuple[str, ...]:
    """Returns the hosts on which, according to a batch system, the whole job ran."""
    found = _EXECUTED.compiled.search(text) if _EXECUTED in matched else None
    if found is None:
        return ()
    if found[2]:
        return tuple(part.partition("/")[0] for part in found[2].split("+") if part)
    return (found[1] or found[3] or found[4] or found[5],)


def placed(text: str, matched: MatchedRegexes) -> tuple[tuple[int, str], ...]:
    """Returns (rank, host) for each rank whose host a line shows."""
    if _TASKS in matched and (tasks := _TASKS.compiled.search(text)):
        return tuple((rank, tasks[1]) for rank in numbers(tasks[2]))
    if _COMM in matched and (comm := _COMM.compiled.search(text)):
        return ((int(comm[2]), comm[1]),)
    return ()
