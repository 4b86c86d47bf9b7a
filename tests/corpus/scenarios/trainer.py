"""The trainer that the scenarios share: data, a small model and a loop, over gloo on the CPU."""

# mypy: ignore-errors

import datetime
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def setup(timeout=60.0, backend="gloo"):
    """Joins the process group; -> rank, world size. Leaves this process's id where the driver finds it."""
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=timeout))
    torch.manual_seed(0)
    note_pid(dist.get_rank())
    return dist.get_rank(), dist.get_world_size()


def finish():
    """Leaves the process group together with the others, as a run that ends well should."""
    dist.barrier()
    dist.destroy_process_group()


def note_pid(rank):
    folder = pathlib.Path(".pids")
    folder.mkdir(exist_ok=True)
    (folder / str(rank)).write_text(str(os.getpid()))


class Net(nn.Module):
    """Two layers: `inputs` features in, `classes` logits out."""

    def __init__(self, inputs=16, width=32, classes=10):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x))


class Pairs(torch.utils.data.Dataset):
    """`count` pairs of 16 features and a label."""

    def __init__(self, count=64):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((16,), float(index % 7)), index % 10


def batch(size=8):
    """-> inputs and labels, of random numbers."""
    return torch.randn(size, 16), torch.randint(0, 10, (size,))


def train(model, rank=0, steps=8, batches=None, on_step=None, loss_fn=None, say=print, ddp=True):
    """Trains for `steps` steps; `on_step(step)` may do anything in between, `say` reports the progress of rank 0."""
    net = DistributedDataParallel(model) if ddp else model
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    loss_fn = loss_fn or nn.CrossEntropyLoss()
    feed = iter(batches) if batches is not None else iter(batch, None)
    for step in range(steps):
        if on_step is not None:
            on_step(step)
        images, labels = next(feed)
        loss = loss_fn(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            say(f"step {step}/{steps} loss {loss.item():.4f}")
