"""Tracebacks in the boxes of rich; rank 1 has a list where a tensor should be."""

# mypy: ignore-errors

import rich.traceback
from rich.console import Console

import trainer

rich.traceback.install(console=Console(stderr=True, width=110, force_terminal=False), show_locals=True)
rank, world = trainer.setup()
feed = (
    (images, labels.tolist() if rank == 1 and n == 4 else labels)
    for n, (images, labels) in enumerate(iter(trainer.batch, None))
)
trainer.train(trainer.Net(), rank, batches=feed)
