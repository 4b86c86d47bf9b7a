"""A logarithm of zero in the loss, found by anomaly detection."""

# mypy: ignore-errors

import torch

import trainer

rank, world = trainer.setup()


def entropy(logits, labels):
    p = torch.softmax(logits * 400, 1)
    return (p * torch.log(p)).sum()


torch.autograd.set_detect_anomaly(True)
trainer.train(trainer.Net(), rank, loss_fn=entropy)
