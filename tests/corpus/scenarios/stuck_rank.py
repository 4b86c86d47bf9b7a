"""Rank 1 hangs in its data and the others run into the time-out."""

# mypy: ignore-errors

import time

import trainer

rank, world = trainer.setup(timeout=6)
trainer.train(trainer.Net(), rank, on_step=lambda step: time.sleep(40) if rank == 1 and step == 3 else None)
