"""Faults of the launch and of the whole run, which no rank makes: wrong commands, ports, rendezvous, and signals."""

from __future__ import annotations

from dataclasses import dataclass

from tests.corpus.cases import PYTHON, SUCCESS, TORCHRUN, Kill

SLOW = "train.py none --pause 0.4"
SLOWER = "train.py none --pause 3"
KILLED_BY_PERSON = ("user.cancelled", "elastic.sigterm")
STEP = "step 4/"


@dataclass(frozen=True)
class LaunchFault:
    """A fault and its label, as for the faults of a job; `command` is a whole run. `slurm`: it runs in a job of a real
    Slurm, which is cancelled or ended at its time limit where `slurm` says so, or asks it for one from outside. `port_taken`: {port} has a listener."""

    name: str
    causes: tuple[str, ...]
    says: tuple[str, ...]
    command: str
    kill: Kill | None = None
    retry: tuple[str, ...] = ("no",)
    slurm: str = ""
    port_taken: bool = False
    needs: str = ""
    since: str = "2.1"


_RUN = f"{TORCHRUN} --standalone --nproc-per-node 2"
_AGENT = f"{TORCHRUN} --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-id 7 --rdzv-endpoint 127.0.0.1:{{port}}"
_AT_PORT = f"{TORCHRUN} --nproc-per-node 2 --master-addr 127.0.0.1 --master-port {{port}}"
_MPI = "mpirun --allow-run-as-root --mca btl self,vader"
_SPAWN = f"env MASTER_ADDR=127.0.0.1 MASTER_PORT={{port}} {PYTHON} {SLOW} --spawn 2"
ANY = ("no", "once", "yes")

LAUNCH_FAULTS = (
    LaunchFault("launcher_terminated", ("elastic.sigterm", "slurm.preempted", "slurm.cancelled"), ("SIGTERM",),
                f"{_RUN} {SLOW}", Kill(STEP, "SIGTERM", "launcher"), ANY),
    LaunchFault("launcher_hung_up", ("elastic.sighup",), ("SIGHUP",), f"{_RUN} {SLOW}", Kill(STEP, "SIGHUP", "launcher"), ANY),
    LaunchFault("launcher_interrupted", KILLED_BY_PERSON, ("KeyboardInterrupt", "SIGINT"), f"{_RUN} {SLOW}",
                Kill(STEP, "SIGINT", "group"), ANY),
    LaunchFault("spawn_interrupted", KILLED_BY_PERSON, ("KeyboardInterrupt", "SIGINT"), _SPAWN, Kill(STEP, "SIGINT", "group"), ANY),
    LaunchFault("spawn_terminated", (*KILLED_BY_PERSON, "gloo.error"), ("SIGTERM", "Terminated", "Connection closed by peer"),
                _SPAWN, Kill(STEP, "SIGTERM", "rank 1"), ANY),
    LaunchFault("mpirun_rank_killed", ("process.oom-killed", "mpi.peer-lost"), ("signal 9", "Connection closed by peer"),
                f"env MASTER_ADDR=127.0.0.1 MASTER_PORT={{port}} {_MPI} --oversubscribe -np 2 {PYTHON} {SLOW}",
                Kill(STEP, "SIGKILL", "rank 1"), ANY),
    LaunchFault("script_absent", ("elastic.launch-args", "data.missing-file", "usage.config"), ("can't open file",),
                f"{_RUN} trian.py"),
    LaunchFault("launcher_option", ("elastic.launch-args", "usage.config"), ("error: unrecognized arguments", "error: "),
                f"{TORCHRUN} --standalone --nprocs 2 {SLOW}"),
    LaunchFault("ranks_by_gpu", ("cuda.no-device", "elastic.launch-args"), ("Cuda is not available.",),
                f"{TORCHRUN} --standalone --nproc-per-node gpu {SLOW}"),
    LaunchFault("ranks_by_word", ("elastic.launch-args", "usage.config"), ("Unsupported nproc_per_node value: all",),
                f"{TORCHRUN} --standalone --nproc-per-node all {SLOW}"),
    LaunchFault("port_taken", ("network.address-in-use",), ("EADDRINUSE", "address already in use"), f"{_AT_PORT} {SLOW}",
                port_taken=True, retry=ANY),
    LaunchFault("rendezvous_alone", ("elastic.rendezvous-timeout",), ("RendezvousTimeoutError", "timed out"),
                f"{_AGENT} --rdzv-conf join_timeout=8 {SLOW}", retry=ANY),
    LaunchFault("rendezvous_unreachable", ("elastic.rendezvous-connection", "network.connect-refused"),
                ("RendezvousConnectionError", "timed out"), f"{_AGENT} --rdzv-conf is_host=0,timeout=8 {SLOW}", retry=ANY),
    LaunchFault("accelerate_config_absent", ("accelerate.config", "data.missing-file", "usage.config"),
                ("The passed configuration file", "No such file"), "{bin}/accelerate launch --config_file fsdp.yaml train.py",
                needs="accelerate"),
    LaunchFault("mpirun_slots", ("mpi.error",), ("not enough slots",), f"{_MPI} -H localhost:2 -np 64 {PYTHON} {SLOW}"),
    LaunchFault("mpirun_program_absent", ("mpi.error", "elastic.launch-args", "env.import-error"),
                ("mpirun was unable to find the specified executable file", "mpirun was unable to launch"),
                f"{_MPI} --oversubscribe -np 2 ./train.sh"),
    LaunchFault("shell_program_absent", ("env.import-error", "elastic.launch-args", "usage.subprocess"), ("command not found",),
                "bash -xc 'deepspeedd train.py'"),
    LaunchFault("slurm_cancelled", ("slurm.cancelled",), ("CANCELLED AT", "CANCELLED"),
                f"srun --overcommit -n 1 {_RUN} {SLOWER}", slurm="cancel", retry=ANY),
    LaunchFault("slurm_time_limit", ("slurm.time-limit",), ("DUE TO TIME LIMIT",), f"srun --overcommit -n 1 {_RUN} {SLOWER}",
                slurm="time", retry=ANY),
    LaunchFault("slurm_partition", ("slurm.rejected",), ("nvalid partition",), "srun --partition h100 hostname", slurm="outside"),
    LaunchFault("slurm_memory", ("slurm.rejected",), ("Requested node configuration is not available", "Memory specification can not be satisfied"),
                "srun --mem 900G hostname", slurm="outside"),
    LaunchFault("slurm_program_absent", ("slurm.launch", "elastic.launch-args", "data.missing-file", "env.import-error"), ("No such file or directory",),
                "srun --overcommit -n 2 ./train_all.sh", slurm="run"),
    LaunchFault("well", (SUCCESS,), (), ""),
)  # fmt: skip
