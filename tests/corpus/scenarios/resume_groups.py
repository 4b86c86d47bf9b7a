"""The optimizer's state is of a model with one layer more."""

# mypy: ignore-errors

import torch

import trainer

rank, world = trainer.setup()
net = trainer.Net()
if rank == 0:
    old = torch.nn.Sequential(trainer.Net(), torch.nn.Linear(10, 10))
    torch.save({"model": net.state_dict(), "optimizer": torch.optim.AdamW(old.parameters()).state_dict()}, "last.pt")
torch.distributed.barrier()
state = torch.load("last.pt")
net.load_state_dict(state["model"])
optimizer = torch.optim.AdamW(net.parameters())
optimizer.load_state_dict(state["optimizer"])
trainer.train(net, rank)
