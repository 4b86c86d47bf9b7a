"""A worker of rank 1 looks up a caption that is not there."""

# mypy: ignore-errors

import torch

import trainer


class Captions(trainer.Pairs):
    def __init__(self, rank):
        super().__init__(64)
        self.captions = {index: index % 10 for index in range(64) if rank != 1 or index < 40}

    def __getitem__(self, index):
        return super().__getitem__(index)[0], self.captions[index]


rank, world = trainer.setup()
loader = torch.utils.data.DataLoader(Captions(rank), batch_size=8, num_workers=2)
trainer.train(trainer.Net(), rank, batches=loader)
