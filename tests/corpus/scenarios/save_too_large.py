"""The limit on file sizes (ulimit -f) ends a save of rank 0."""

# mypy: ignore-errors

import resource

import torch

import trainer

rank, world = trainer.setup()
net = trainer.Net(width=4000)
if rank == 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))


def on_step(step):
    if rank == 0 and step == 4:
        print("saving epoch-0.pt")
        torch.save(net.state_dict(), "epoch-0.pt")


trainer.train(net, rank, on_step=on_step)
