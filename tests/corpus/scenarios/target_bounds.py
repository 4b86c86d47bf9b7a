"""Rank 2's shard holds a class that the head does not have."""

# mypy: ignore-errors

import torch

import trainer

rank, world = trainer.setup()
feed = ((torch.randn(8, 16), torch.arange(8) + (5 if rank == 2 and n == 6 else 0)) for n in range(20))
trainer.train(trainer.Net(), rank, batches=feed)
