"""Resuming from a checkpoint that was never written."""

# mypy: ignore-errors

import torch

import trainer

rank, world = trainer.setup()
net = trainer.Net()
state = torch.load("runs/base/checkpoint-9000.pt", map_location="cpu")
net.load_state_dict(state["model"])
trainer.train(net, rank)
