"""A backend that this build of torch does not have."""

# mypy: ignore-errors

import trainer

rank, world = trainer.setup(backend="nccl")
trainer.train(trainer.Net(), rank)
