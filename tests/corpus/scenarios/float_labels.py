"""Labels come as floating-point numbers from a table."""

# mypy: ignore-errors

import torch

import trainer

rank, world = trainer.setup()
feed = ((torch.randn(8, 16), torch.arange(8).float()) for _ in range(20))
trainer.train(trainer.Net(), rank, batches=feed)
