"""A second head that takes no part in the loss."""

# mypy: ignore-errors

import torch

import trainer


class TwoHeads(trainer.Net):
    def __init__(self):
        super().__init__()
        self.aux = torch.nn.Linear(32, 4)


rank, world = trainer.setup()
trainer.train(TwoHeads(), rank)
