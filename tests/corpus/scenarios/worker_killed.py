"""A worker process of rank 1's loader is killed, as the kernel does it when memory runs out."""

# mypy: ignore-errors

import os
import signal

import torch

import trainer


class Decoder(trainer.Pairs):
    def __getitem__(self, index):
        if rank == 1 and index == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


rank, world = trainer.setup()
loader = torch.utils.data.DataLoader(Decoder(), batch_size=8, num_workers=2)
trainer.train(trainer.Net(), rank, batches=loader)
