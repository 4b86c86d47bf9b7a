"""The port in the script belongs to another job of the same host."""

# mypy: ignore-errors

import os
import socket
import sys

import torch.multiprocessing as mp

import trainer


def worker(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(world))
    trainer.setup(timeout=8)


if __name__ == "__main__":
    other = socket.create_server(("", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
    mp.spawn(worker, args=(2, sys.argv[1]), nprocs=2)
