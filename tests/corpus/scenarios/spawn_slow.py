"""A healthy job under mp.spawn, for Ctrl-C."""

# mypy: ignore-errors

import os
import sys
import time

import torch.multiprocessing as mp

import trainer


def worker(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(world))
    trainer.setup()
    trainer.train(trainer.Net(), rank, steps=400, on_step=lambda step: time.sleep(0.2))


if __name__ == "__main__":
    mp.spawn(worker, args=(2, sys.argv[1]), nprocs=2)
