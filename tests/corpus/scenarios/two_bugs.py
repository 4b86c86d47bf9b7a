"""Rank 2 raises at once; rank 1 has a bug of its own a little later, the rest lose their peers."""

# mypy: ignore-errors

import time

import trainer

rank, world = trainer.setup()


def on_step(step):
    if rank == 2 and step == 3:
        lr = "0.1"
        return lr / 10
    if rank == 1 and step == 3:
        time.sleep(0.8)
        return [][step]
    return None


trainer.train(trainer.Net(), rank, on_step=on_step)
