"""Two processes are started of a world of three."""

# mypy: ignore-errors

import datetime
import os
import sys

import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    print(f"rank {rank}: waiting for the others", flush=True)
    dist.init_process_group("gloo", rank=rank, world_size=3, timeout=datetime.timedelta(seconds=8))


if __name__ == "__main__":
    mp.spawn(worker, args=(sys.argv[1],), nprocs=2)
