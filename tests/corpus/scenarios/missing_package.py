"""A package that only the cluster's image has."""

# mypy: ignore-errors

import torch

import trainer
from apex.optimizers import FusedAdam

rank, world = trainer.setup()
FusedAdam(trainer.Net().parameters())
