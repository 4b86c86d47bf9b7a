"""A layer was left on the meta device."""

# mypy: ignore-errors

import torch

import trainer

rank, world = trainer.setup()
net = trainer.Net()
net.head = torch.nn.Linear(32, 10, device="meta")
trainer.train(net, rank, ddp=False)
