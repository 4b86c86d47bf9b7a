"""Rank 0 aborts in native code in each attempt."""

# mypy: ignore-errors

import os

import trainer

rank, world = trainer.setup(timeout=15)
trainer.train(trainer.Net(), rank, on_step=lambda step: os.abort() if rank == 0 and step == 3 else None)
