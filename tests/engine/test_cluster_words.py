"""What schedulers, container runtimes, MPI and drivers print of jobs that never ran: forms of their own sources."""

from collections.abc import Callable

import pytest

from tests.engine.test_engine import triage
from tests.logs import NO_FAILURE, steps
from torchtriage.engine import Engine

QUEUE = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
NODES = "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST"
CONTROLLER = "[2026-05-01T09:00:00.500] "
KERNEL = "[ 9426.000001] "
TOLD = {
    "slurm.rejected": [
        "sbatch: error: AssocMaxSubmitJobLimit",
        f"{QUEUE}\n              4711      h100    train     mila PD       0:00      4 (QOSMaxNodePerUserLimit)",
        "   JobState=PENDING Reason=BadConstraints Dependency=(null)",
        "sbatch: unrecognized option '--gpu-per-node=8'\nTry \"sbatch --help\" for more information",
    ],
    "slurm.launch": [
        f"{CONTROLLER}error: Prolog launch failure, JobId=4711",
        f"{CONTROLLER}[4711.batch] error: Could not open stdout file /scratch/out/4711.log: No such file or directory",
        f"{CONTROLLER}Could not launch job 4711 and not able to requeue it, cancelling job",
        "slurmstepd: error: common_file_write_uints: write value '240' to '/sys/fs/cgroup/job_9/cgroup.procs' failed: No space left on device",
    ],
    "slurm.node-fail": [
        f"{NODES}\nh100         up 2-00:00:00      3  fail* gpu-[20-22]",
        f"{NODES}\nh100*        up   infinite      1   down gpu-20",
        f"{CONTROLLER}node gpu-20 not resumed by ResumeTimeout(900) - marking down and power_save",
        "slurmstepd: error: *** STEP 4711.0 STEPD TERMINATED ON gpu-20 AT 2026-05-01T09:00:00 DUE TO JOB NOT ENDING WITH SIGNALS ***",
    ],
    "slurm.preempted": [f"{CONTROLLER}Preempted JobId=4711 had to be killed"],
    "slurm.oom": [f"{CONTROLLER}_job_complete: JobId=4711 OOM failure"],
    "slurm.daemon": [f"{CONTROLLER}error: cgroup namespace 'freezer' not mounted. aborting"],
    "k8s.unschedulable": [
        "Warning  Unschedulable  2m  volcano  0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu.",
        "Warning  NodeAffinity  2m  kubelet  Predicate NodeAffinity failed",
    ],
    "container.runtime": [
        'Warning  Failed  2m  kubelet  Error: failed to reserve container name "torch_0": name "torch_0" is reserved for "9f2"',
        "Error: OCI runtime error: crun: error executing hook `/usr/bin/nvidia-container-toolkit` (exit code: 1)",
        "FATAL:   stat /usr/local/bin/torchrun: no such file or directory",
        "[ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1",
    ],
    "mpi.error": [
        "A request was made to bind to that would result in binding more",
        "[mpiexec@node1] HYDU_sock_connect (utils/sock/sock.c:143): unable to get host address for node2",
    ],
    "xid.79": [
        f"{KERNEL}nvidia 0000:3b:00.0: Refused to change power state, currently in D3\n"
        f"{KERNEL}NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."
    ],
    "hw.pcie": [f"{KERNEL}nvidia 0000:3b:00.0: Refused to change power state, currently in D3"],
    "cuda.gsp": [
        "10.0.0.7: kern: warning: [2026-05-01T09:00:00.288830314Z]: NVRM:      0    76   GSP_RM_CONTROL              4127 0x0000000020803039"
    ],
    "accelerator.runtime-error": [
        "RuntimeError: Bad StatusOr access: INTERNAL: Nrt::ExecuteRepeated failed on NeuronCore 3: status=1202"
    ],
}  # fmt: skip
WELL = [
    f"{CONTROLLER}_job_complete: JobId=4711 done",
    f"{NODES}\nh100         up 2-00:00:00      3   idle gpu-[20-22]\nh100         up 2-00:00:00      1   comp gpu-23",
    f"{QUEUE}\n              4711      h100    train     mila PD       0:00      4 (Priority)",
    f"{KERNEL}amdgpu 0000:c1:00.0: amdgpu: 3 correctable hardware errors detected in umc block",
]


def test_a_job_that_a_pasted_queue_shows_as_refused_has_failed(engine: Engine, decided: Callable[[], set[str]]) -> None:
    root = triage(engine, TOLD["slurm.rejected"][1]).root_cause
    assert root is not None
    assert root.entry == "slurm.rejected"
    assert {"warning-of-a-paste"} <= decided()


@pytest.mark.parametrize(
    ("entry", "expected"), [(entry, expected) for entry, each in TOLD.items() for expected in each]
)
def test_the_message_is_known(engine: Engine, entry: str, expected: str) -> None:
    root = triage(engine, *expected.split("\n")).root_cause
    assert root is not None
    assert root.entry == entry


@pytest.mark.parametrize("expected", WELL)
def test_what_is_near_to_it_and_well_is_not_a_failure(engine: Engine, expected: str) -> None:
    assert triage(engine, *expected.split("\n")).outcome in NO_FAILURE


def test_the_state_of_other_nodes_is_not_a_cause_of_this_run(engine: Engine) -> None:
    asked = ["+ sinfo", NODES, "h100         up 2-00:00:00      3  down* gpu-[20-22]", "+ srun python train.py"]
    assert triage(engine, *asked, *steps(range(5)), "training finished").outcome == "healthy"
    raised = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "Moon: it is full"]
    root = triage(engine, *asked, *raised).root_cause
    assert root is not None
    assert root.entry is None


@pytest.mark.parametrize(
    "event",
    [
        "Normal   NotTriggerScaleUp  2m  cluster-autoscaler  pod didn't trigger scale-up: 3 Insufficient cpu",
        "Warning  FailedPostStartHook  2m  kubelet  PostStartHook failed",
        'Warning  ProvisioningFailed  2m  persistentvolume-controller  storageclass.storage.k8s.io "fast" not found',
    ],
)
def test_events_of_another_programs_pod_are_none_of_a_training_run(engine: Engine, event: str) -> None:
    pod = ["Name:             web-frontend-7c9d", "Containers:", "  nginx:", "    Image:         nginx:1.25", "Events:"]
    root = triage(engine, *pod, f"  {event}").root_cause
    assert root is None or root.entry is None
