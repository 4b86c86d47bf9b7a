"""A healthy job that takes its time, for signals from outside."""

# mypy: ignore-errors

import time

import trainer

rank, world = trainer.setup()
trainer.train(trainer.Net(), rank, steps=400, on_step=lambda step: time.sleep(0.2))
print(f"rank {rank} finished")
