"""The loss of a batch is not reduced before backward."""

# mypy: ignore-errors

import torch

import trainer

rank, world = trainer.setup()
trainer.train(trainer.Net(), rank, loss_fn=torch.nn.CrossEntropyLoss(reduction="none"))
