"""A worker process of rank 0 crashes in native code."""

# mypy: ignore-errors

import ctypes

import torch

import trainer


class Decoder(trainer.Pairs):
    def __getitem__(self, index):
        if rank == 0 and index == 37:
            ctypes.string_at(0)
        return super().__getitem__(index)


rank, world = trainer.setup()
loader = torch.utils.data.DataLoader(Decoder(), batch_size=8, num_workers=2)
trainer.train(trainer.Net(), rank, batches=loader)
