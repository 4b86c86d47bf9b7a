"""The data's root comes from the environment, where it is not."""

# mypy: ignore-errors

import os

import trainer

rank, world = trainer.setup()
root = os.environ["IMAGENET_ROOT"]
trainer.train(trainer.Net(), rank)
