"""Rank 0 may not write into the folder of another user."""

# mypy: ignore-errors

import os
import pathlib

import torch

import trainer

pathlib.Path("outputs").mkdir(mode=0o555, exist_ok=True)
rank, world = trainer.setup()
net = trainer.Net()
trainer.train(net, rank, steps=4)
if rank == 0:
    if os.getuid() == 0:
        os.setuid(65534)
    torch.save(net.state_dict(), "outputs/final.pt")
torch.distributed.barrier()
