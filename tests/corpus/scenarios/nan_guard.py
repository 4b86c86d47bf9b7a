"""Rank 1 stops when its loss is no longer a number."""

# mypy: ignore-errors

import math

import torch

import trainer


def checked(logits, labels):
    loss = torch.nn.functional.cross_entropy(logits, labels)
    if not math.isfinite(loss.item()):
        raise FloatingPointError(f"loss is {loss.item()} on rank {rank}, stopping training")
    return loss


rank, world = trainer.setup()
feed = ((torch.randn(8, 16) * (float("nan") if rank == 1 and n == 5 else 1), torch.arange(8)) for n in range(20))
trainer.train(trainer.Net(), rank, batches=feed, loss_fn=checked)
