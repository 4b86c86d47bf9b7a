"""Mistakes with process groups, collectives, DistributedDataParallel, FSDP and DTensor."""

# mypy: ignore-errors

import datetime
import os
import time

from faults import BUG, ONCE, fault

LEFT = "Connection closed by peer"


@fault(
    "ddp.unfinished-reduction",
    "RuntimeError: Expected to have finished reduction in the prior iteration",
    ranks="all",
    at="group",
)
def ddp_unused(job):
    import torch

    import trainer

    class TwoHeads(trainer.Net):
        """Uses its second head never."""

        def __init__(self):
            super().__init__()
            self.other = torch.nn.Linear(32, 4)

    trainer.train(TwoHeads(), job.rank)


@fault("ddp.marked-ready-twice", "RuntimeError: Expected to mark a variable ready only once", ranks="all", at="group")
def ddp_twice(job):
    import torch
    from torch.utils.checkpoint import checkpoint

    import trainer

    class Twice(trainer.Net):
        """Runs a checkpointed layer twice."""

        def forward(self, x):
            for _ in range(2):
                y = checkpoint(self.body, x, use_reentrant=True)
            z = checkpoint(self.body, x, use_reentrant=True)
            return self.head(y + z)

    net = torch.nn.parallel.DistributedDataParallel(Twice(), find_unused_parameters=True)
    net(torch.zeros(2, 16, requires_grad=True)).sum().backward()


@fault(
    ("ddp.no-grad-params", BUG),
    "DistributedDataParallel is not needed when a module doesn't have any parameter",
    ranks="all",
    at="group",
)
def ddp_frozen(job):
    import trainer

    trainer.train(trainer.Net().requires_grad_(False), job.rank)


@fault(
    "ddp.param-shape-mismatch",
    (
        "appears not to match sizes of the same param in process",
        "expects same model across all ranks",
        "appears not to match strides",
    ),
    retry=("no",),
)
def ddp_widths(job):
    import torch

    torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 20))


@fault("ddp.uninitialized-group", "Default process group has not been initialized", at="start", ranks="all")
def group_missing(job):
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.zeros(1))


@fault(
    ("ddp.uninitialized-group", BUG, "usage.config"),
    "trying to initialize the default process group twice!",
    at="group",
    ranks="all",
)
def group_twice(job):
    import torch.distributed as dist

    dist.init_process_group("gloo")


@fault(
    ("gloo.error", "hang.uneven-batches", "gloo.timeout"),
    (LEFT, "Connection reset by peer"),
    ranks="hidden",
    retry=("no", "once"),
)
def fewer_batches(job):
    os.write(1, b"epoch 0 done: 3 batches\n")
    os._exit(0)


@fault(("gloo.timeout", "perf.hang"), "Timed out waiting 15000ms", ranks="hidden", retry=("no", "once"))
def collective_skipped(job):
    time.sleep(60)


@fault(
    "gloo.timeout",
    ("failed to pass monitoredBarrier in 6000 ms", "Ranks 1 failed to pass"),
    at="group",
    ranks="all",
    retry=("no", "once"),
)
def barrier_skipped(job):
    import torch.distributed as dist

    if job.rank == job.victim:
        time.sleep(25)
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=6), wait_all_ranks=True)


@fault(
    ("collective.mismatch", "gloo.error", "process.sigabrt"),
    ("op.preamble.length <= op.nbytes", LEFT, "Connection reset by peer"),
    at="group",
    ranks="all",
)
def gather_lengths(job):
    import torch
    import torch.distributed as dist

    mine = torch.zeros(100 + 50 * (job.rank == job.victim))
    dist.all_gather([torch.zeros_like(mine) for _ in range(job.world)], mine)


@fault(
    "collective.mismatch",
    ("Detected mismatch between collectives on ranks", "ranks are running collective"),
    at="group",
    ranks="all",
)
def collective_differs(job):
    import torch
    import torch.distributed as dist

    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    group = dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=12))
    if job.rank == job.victim:
        dist.broadcast(torch.zeros(4), 0, group=group)
    else:
        dist.all_reduce(torch.zeros(4), group=group)


@fault(
    ("elastic.rendezvous-timeout", "gloo.timeout", "hang.init-process-group"),
    ("wait timeout after 4000ms", "Socket Timeout"),
    at="group",
    retry=("no", "once", "yes"),
)
def key_never_set(job):
    import torch.distributed as dist

    store = dist.distributed_c10d._get_default_store()
    store.set_timeout(datetime.timedelta(seconds=4))
    store.get("never")


@fault(
    ("nccl.version", "cuda.no-device"),
    (
        "ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
        "Distributed package doesn't have NCCL built in",
        "No CUDA GPUs",
    ),
    at="start",
    ranks="all",
)
def nccl_without_gpu(job):
    import torch.distributed as dist

    dist.init_process_group("nccl")


@fault(
    (BUG, "usage.config", "ddp.uninitialized-group", "nccl.version"),
    ("nvalid backend: ", "Unknown c10d backend type NCLL"),
    at="start",
    ranks="all",
)
def backend_unknown(job):
    import torch.distributed as dist

    dist.init_process_group("ncll")


@fault(
    (
        BUG,
        "usage.config",
        "elastic.launch-args",
        "ddp.uninitialized-group",
        "usage.value-range",
    ),
    (
        "is not part of group",
        "Invalid ranks",
        "the new group's rank should be within the world_size set by `init_process_group`",
        "the new group's world size should be less or equal to the world size set by init_process_group",
    ),
    at="group",
    ranks="all",
)
def group_of_strangers(job):
    import torch.distributed as dist

    dist.new_group([0, job.world + 3])


@fault((BUG, "dataloader.pickle", "usage.config"), "Can't pickle local object", at="group", ranks="all")
def gather_of_lambda(job):
    import torch.distributed as dist

    dist.all_gather_object([None] * job.world, lambda: 1)


@fault(
    ("gloo.error", "cuda.no-device", "usage.device-mismatch", BUG, "fsdp.error"),
    "FSDP needs a non-CPU accelerator device",
    at="group",
    ranks="all",
    since="2.4",
)
def fsdp_on_cpu(job):
    from torch.distributed.fsdp import FullyShardedDataParallel

    FullyShardedDataParallel(job.net or __import__("trainer").Net())


@fault(("fsdp.error", BUG), "got mixed torch.Tensor and DTensor", at="group", ranks="all", since="2.4")
def dtensor_mixed(job):
    import torch
    from torch.distributed._tensor import Shard, distribute_tensor
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (job.world,))
    weight = distribute_tensor(torch.ones(8, 8), mesh, [Shard(0)])
    return torch.mm(weight, torch.ones(8, 8))


@fault(
    ("fsdp.error", "usage.config", BUG),
    ("Mesh should not be bigger than default world size", "Mesh should not be bigger than"),
    at="group",
    ranks="all",
    since="2.4",
)
def mesh_too_large(job):
    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (job.world * 4,))


@fault(
    ("elastic.launch-args", BUG, "usage.config", "usage.value-range"),
    "ValueError: Invalid rank 9, rank should be in the interval",
    at="group",
    ranks="all",
)
def sampler_rank(job):
    from torch.utils.data import DistributedSampler

    DistributedSampler(range(64), num_replicas=job.world, rank=9)


@fault(("ddp.uninitialized-group",), "Default process group has not been initialized", at="start", ranks="all")
def sampler_without_group(job):
    from torch.utils.data import DistributedSampler

    DistributedSampler(range(64))


@fault(
    ("gloo.error", "network.no-route", "network.nic-down", "usage.config", "network.connect-refused"),
    ("Unable to find address for: eth9", "Unable to resolve", "eth9"),
    at="start",
    ranks="all",
)
def interface_missing(job):
    os.environ["GLOO_SOCKET_IFNAME"] = "eth9"


@fault(
    ("elastic.rendezvous-timeout", "network.connect-refused", "elastic.rendezvous-connection"),
    (
        "The client socket has timed out after",
        "wait timeout after",
        "Timed out after",
        "Socket Timeout",
        "timed out after 8 seconds",
    ),
    at="start",
    ranks="all",
    retry=ONCE,
)
def nobody_at_port(job):
    import torch.distributed as dist

    timeout = datetime.timedelta(seconds=8)
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:9", rank=1 + job.rank, world_size=9, timeout=timeout)


@fault(
    ("network.no-route", "elastic.rendezvous-connection", "network.connect-refused", "elastic.rendezvous-timeout"),
    ("trainer-0.headless.invalid", "getaddrinfo", "Name or service not known"),
    at="start",
    ranks="all",
    retry=ONCE,
)
def name_not_resolved(job):
    import torch.distributed as dist

    timeout = datetime.timedelta(seconds=8)
    address = "tcp://trainer-0.headless.invalid:29511"
    dist.init_process_group("gloo", init_method=address, rank=1 + job.rank, world_size=9, timeout=timeout)
