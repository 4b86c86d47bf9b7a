"""A list grows until Python itself has no memory left; the error has no message."""

# mypy: ignore-errors

import resource

import trainer

rank, world = trainer.setup()
if rank == 0:
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def on_step(step):
    if rank == 0 and step == 2:
        return [0] * (1 << 31)
    return None


trainer.train(trainer.Net(), rank, on_step=on_step)
