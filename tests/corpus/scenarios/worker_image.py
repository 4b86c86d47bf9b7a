"""One image of rank 0's shard is an HTML page that says 404."""

# mypy: ignore-errors

import pathlib

import torch
from PIL import Image

import trainer


class Photos(trainer.Pairs):
    def __getitem__(self, index):
        if index == 21 and rank == 0:
            Image.open("photos/0021.jpg").convert("RGB")
        return super().__getitem__(index)


rank, world = trainer.setup()
pathlib.Path("photos").mkdir(exist_ok=True)
pathlib.Path("photos/0021.jpg").write_text("<html><body>404 Not Found</body></html>")
loader = torch.utils.data.DataLoader(Photos(), batch_size=8, num_workers=2)
trainer.train(trainer.Net(), rank, batches=loader)
