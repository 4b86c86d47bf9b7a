"""A backbone of another depth and another number of classes."""

# mypy: ignore-errors

import torch

import trainer

rank, world = trainer.setup()
if rank == 0:
    torch.save(trainer.Net(classes=1000, width=64).state_dict() | {"norm.weight": torch.ones(4)}, "pretrained.pt")
torch.distributed.barrier()
net = trainer.Net()
net.load_state_dict(torch.load("pretrained.pt"))
trainer.train(net, rank)
