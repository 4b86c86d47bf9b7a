"""A process of mp.spawn reads a null pointer."""

# mypy: ignore-errors

import ctypes
import os
import sys

import torch.multiprocessing as mp

import trainer


def worker(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(world))
    trainer.setup()
    trainer.train(trainer.Net(), rank, on_step=lambda step: ctypes.string_at(0) if rank == 1 and step == 2 else None)


if __name__ == "__main__":
    mp.spawn(worker, args=(2, sys.argv[1]), nprocs=2)
