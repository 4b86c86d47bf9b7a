"""Rank 0 broadcasts what the others all-reduce."""

# mypy: ignore-errors

import torch
import torch.distributed as dist

import trainer

rank, world = trainer.setup(timeout=8)


def on_step(step):
    if step == 4:
        value = torch.ones(64)
        if rank == 0:
            dist.broadcast(value, 0)
        else:
            dist.all_reduce(value)


trainer.train(trainer.Net(), rank, on_step=on_step)
