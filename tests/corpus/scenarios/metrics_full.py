"""The metrics file lies on a device without space."""

# mypy: ignore-errors

import pathlib

import trainer

rank, world = trainer.setup()
if rank == 0:
    pathlib.Path("metrics.jsonl").unlink(missing_ok=True)
    pathlib.Path("metrics.jsonl").symlink_to("/dev/full")


def on_step(step):
    if rank == 0 and step % 2 == 0:
        with open("metrics.jsonl", "a") as file:
            file.write(f'{{"step": {step}}}\n')


trainer.train(trainer.Net(), rank, on_step=on_step)
