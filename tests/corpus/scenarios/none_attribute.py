"""Rank 2 meets a sample without an image while the others wait for it."""

# mypy: ignore-errors

import trainer


def fetch(step, rank):
    sample = {"image": None if rank == 2 and step == 4 else trainer.batch()[0], "label": trainer.batch()[1]}
    return sample["image"].mul(0.5), sample["label"]


def feed(rank):
    step = 0
    while True:
        yield fetch(step, rank)
        step += 1


rank, world = trainer.setup()
trainer.train(trainer.Net(), rank, batches=feed(rank))
