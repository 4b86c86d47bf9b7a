"""Rank 0 writes its report and never comes to the barrier."""

# mypy: ignore-errors

import time

import torch.distributed as dist

import trainer

rank, world = trainer.setup(timeout=6)
trainer.train(trainer.Net(), rank, steps=4)
if rank == 0:
    time.sleep(40)
else:
    dist.barrier()
