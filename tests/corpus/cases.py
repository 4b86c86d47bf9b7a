"""What each case of the corpus runs, and the label that a reader of its script gives it.

A label says what the scenario does and what its log can show; it is written before any engine has read the log.
`evidence` is a piece of the line that names the cause: the driver keeps that line, from the piece to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SUCCESS = "none.success"
TORCHRUN = "{bin}/torchrun"
PYTHON = "{bin}/python"


@dataclass(frozen=True)
class Proc:
    """A command of a run; `label` goes before each of its lines, `delay` is in seconds."""

    command: str
    label: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass(frozen=True)
class Kill:
    """A signal from outside, sent when `when` stands in the log, to "rank N", "launcher" or "group"."""

    when: str
    signal: str
    whom: str


@dataclass(frozen=True)
class Case:
    """One case: `script` runs as `run_as` in each of `runs`, whose processes run side by side; `form` wraps lines."""

    name: str
    script: str
    runs: tuple[tuple[Proc, ...], ...]
    cause: str
    evidence: str
    rank: int | None = None
    also: tuple[str, ...] = ()
    cascades: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: str | None = None
    form: str = ""
    tree: bool = False
    kill: Kill | None = None
    run_as: str = "train.py"
    extra: tuple[str, ...] = ()
    rank_told: bool = True  # False: the log does not tell it, so that nobody can do better than leave it open
    seconds: int = 75
    torch: str = "2.13"  # the version that writes the log, as far as the release
    notes: str = ""


def torchrun(ranks: int, arguments: str = "", options: str = "--standalone", run_as: str = "train.py") -> str:
    """-> the command that starts `ranks` ranks of the script on this host."""
    return f"{TORCHRUN} {options} --nproc-per-node {ranks} {run_as} {arguments}".strip()


def spelled_out(ranks: int, arguments: str = "", options: str = "--standalone") -> str:
    """-> the same in the spelling of options that torch 1.10 to 1.13 want and later versions still take."""
    return f"{TORCHRUN} {options} --nproc_per_node {ranks} train.py {arguments}".strip()


def launch_1_9(ranks: int, arguments: str = "") -> str:
    """-> the same before there was a program of the name."""
    return f"{PYTHON} -m torch.distributed.run --standalone --nproc_per_node {ranks} train.py {arguments}".strip()


def launch_1_7(ranks: int, arguments: str = "") -> str:
    """-> the same before torchelastic came into torch."""
    options = f"--use_env --master_port {{port}} --nproc_per_node {ranks}"
    return f"{PYTHON} -m torch.distributed.launch {options} train.py {arguments}".strip()


def one(command: str, **env: str) -> tuple[tuple[Proc, ...], ...]:
    """-> a single run of a single command."""
    return ((Proc(command, env=env),),)


def two_hosts(first: str = "node-a: ", second: str = "node-b: ", ranks: int = 2) -> tuple[tuple[Proc, ...], ...]:
    """-> a run of two agents that stand for two hosts, in one log, each line with its host's label."""
    options = "--nnodes 2 --node-rank {} --master-addr 127.0.0.1 --master-port {{port}}"
    return (
        (
            Proc(torchrun(ranks, options=options.format(0)), first),
            Proc(torchrun(ranks, options=options.format(1)), second, delay=0.5),
        ),
    )


def two_hosts_spelled_out() -> tuple[tuple[Proc, ...], ...]:
    """-> the same for torch 1.12, two ranks a host, with labels as pdsh writes them."""
    options = "--nnodes 2 --node_rank {} --master_addr 127.0.0.1 --master_port {{port}}"
    return (
        (
            Proc(spelled_out(2, options=options.format(0)), "node-a1: "),
            Proc(spelled_out(2, options=options.format(1)), "node-b1: ", delay=0.5),
        ),
    )


def srun(ranks: int) -> tuple[tuple[Proc, ...], ...]:
    """-> a run of `ranks` processes without a launcher, each line with its task's number, as `srun -l` prints it."""
    common = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}"}
    return (tuple(Proc(f"{PYTHON} train.py", f"{n}: ", {"RANK": str(n), **common}) for n in range(ranks)),)


PEERS = ("gloo.error", "elastic.sigterm")
ALL_RANKS = "Every rank fails alike."
