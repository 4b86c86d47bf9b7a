"""How the ranks of a job are started: the words for a script in, the commands of one run out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.corpus.cases import PYTHON, Proc, torchrun, two_hosts

Run = tuple[Proc, ...]


@dataclass(frozen=True)
class Launcher:
    """`run` makes the commands of one run from the script's arguments and the number of ranks. `slurm` is set where they
    are a batch script for a real Slurm, `tree` where the ranks write files under logs/; `folder` where the log is every
    file that Slurm wrote. `needs` is a package that the job's Python must have."""

    run: Callable[[str, int], Run]
    slurm: bool = False
    tree: bool = False
    folder: bool = False
    needs: str = ""
    alone: bool = False  # it starts a single rank, whatever it is asked for


def _torchrun(options: str) -> Callable[[str, int], Run]:
    return lambda arguments, ranks: (Proc(torchrun(ranks, arguments, options)),)


def _module(arguments: str, ranks: int) -> Run:
    return (Proc(f"{PYTHON} -m torch.distributed.run --standalone --nproc-per-node {ranks} train.py {arguments}"),)


def _hosts(arguments: str, ranks: int) -> Run:
    agents = two_hosts(ranks=1 if ranks == 2 else 2)[0]
    return tuple(Proc(f"{agent.command} {arguments}", agent.label, agent.env, agent.delay) for agent in agents)


def _accelerate(arguments: str, ranks: int) -> Run:
    options = "--cpu --num_machines 1 --mixed_precision no --dynamo_backend no"
    command = (
        f"{{bin}}/accelerate launch {options} --num_processes {ranks} --main_process_port {{port}} train.py {arguments}"
    )
    return (Proc(command, env={"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}"}),)


def _alone(option: str) -> Callable[[str, int], Run]:
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}"}
    return lambda arguments, ranks: (Proc(f"{PYTHON} train.py {arguments} {option} {ranks}", env=group),)


def _shell(arguments: str, ranks: int) -> Run:
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}", "WORLD_SIZE": str(ranks)}
    start = f"for rank in $(seq 0 {ranks - 1}); do RANK=$rank LOCAL_RANK=$rank python train.py {arguments} & done; wait"
    return (Proc(f"bash -xc '{start}'", env=group),)


def _mpirun(options: str) -> Callable[[str, int], Run]:
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}"}
    start = "mpirun --allow-run-as-root --oversubscribe --mca btl self,vader"
    return lambda arguments, ranks: (Proc(f"{start} {options} -np {ranks} {PYTHON} train.py {arguments}", env=group),)


def _srun(options: str) -> Callable[[str, int], Run]:
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}"}
    start = "srun --overcommit --kill-on-bad-exit=1"
    return lambda arguments, ranks: (Proc(f"{start} {options} -n {ranks} {PYTHON} train.py {arguments}", env=group),)


LAUNCHERS: Mapping[str, Launcher] = {
    "torchrun": Launcher(_torchrun("--standalone")),
    "torchrun-tee": Launcher(_torchrun("--standalone --tee 3")),
    "torchrun-restarts": Launcher(_torchrun("--standalone --max-restarts 1")),
    "torchrun-tree": Launcher(_torchrun("--standalone --redirects 3 --log-dir logs"), tree=True),
    "torch.distributed.run": Launcher(_module),
    "two-hosts": Launcher(_hosts),
    "accelerate": Launcher(_accelerate, needs="accelerate", alone=True),
    "spawn": Launcher(_alone("--spawn")),
    "shell": Launcher(_shell),
    "mpirun": Launcher(_mpirun("")),
    "mpirun-tagged": Launcher(_mpirun("--tag-output")),
    "srun": Launcher(_srun(""), slurm=True),
    "srun-labelled": Launcher(_srun("--label"), slurm=True),
    "srun-files": Launcher(_srun("--output=slurm-%j-%t.out"), slurm=True, folder=True),
    "ray": Launcher(_alone("--ray"), needs="ray"),
}
