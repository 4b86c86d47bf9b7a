"""A job written for GPUs on a machine without."""

# mypy: ignore-errors

import trainer

rank, world = trainer.setup()
net = trainer.Net().cuda(rank)
trainer.train(net, rank)
