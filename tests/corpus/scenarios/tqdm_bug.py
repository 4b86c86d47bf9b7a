"""A progress bar on every rank; rank 1 unpacks three values from two."""

# mypy: ignore-errors

from tqdm import tqdm

import trainer

rank, world = trainer.setup()
bar = tqdm(total=30, desc=f"rank {rank}", mininterval=0)


def on_step(step):
    bar.update(1)
    if rank == 1 and step == 20:
        images, labels, weights = trainer.batch()


trainer.train(trainer.Net(), rank, steps=30, on_step=on_step, say=lambda text: None)
