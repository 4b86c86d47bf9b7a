"""A fixed batch size in a view meets the smaller last batch of rank 1."""

# mypy: ignore-errors

import torch

import trainer


class Grouped(trainer.Net):
    def forward(self, x):
        return super().forward(x.view(8, 4, 4).flatten(1))


rank, world = trainer.setup()
feed = (trainer.batch(7 if rank == 1 and n == 6 else 8) for n in range(20))
trainer.train(Grouped(), rank, batches=feed)
