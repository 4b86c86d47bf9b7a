"""A rank sends itself a signal at a step: rank, step and signal come as arguments."""

# mypy: ignore-errors

import os
import sys

import trainer

victim, at, number = map(int, sys.argv[1:4])
rank, world = trainer.setup()


def on_step(step):
    if rank == victim and step == at:
        os.kill(os.getpid(), number)


trainer.train(trainer.Net(), rank, on_step=on_step)
