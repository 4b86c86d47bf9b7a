"""mp.spawn without torchrun; process 1 divides by the length of an empty shard."""

# mypy: ignore-errors

import os
import sys

import torch.multiprocessing as mp

import trainer


def worker(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(world))
    trainer.setup()
    shard = list(range(40)) if rank != 1 else []
    per_epoch = 400 // len(shard)
    trainer.train(trainer.Net(), rank, steps=per_epoch)


if __name__ == "__main__":
    mp.spawn(worker, args=(3, sys.argv[1]), nprocs=3)
