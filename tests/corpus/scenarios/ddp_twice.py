"""Re-entrant activation checkpointing of a layer that is used twice."""

# mypy: ignore-errors

import torch
from torch.utils.checkpoint import checkpoint

import trainer


class Shared(trainer.Net):
    def __init__(self):
        super().__init__(width=16)

    def forward(self, x):
        x = checkpoint(self.body, x.requires_grad_(), use_reentrant=True)
        return self.head(checkpoint(self.body, x, use_reentrant=True))


rank, world = trainer.setup()
net = torch.nn.parallel.DistributedDataParallel(Shared(), find_unused_parameters=True)
trainer.train(net, rank, ddp=False)
