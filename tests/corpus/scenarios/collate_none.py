"""The dataset answers None for a sample that it cannot read."""

# mypy: ignore-errors

import torch

import trainer


class Audio(trainer.Pairs):
    def __getitem__(self, index):
        if index == 26:
            print(f"[warn] clip {index} is too short, skipped")
            return None
        return super().__getitem__(index)


rank, world = trainer.setup()
loader = torch.utils.data.DataLoader(Audio(), batch_size=8, num_workers=2)
trainer.train(trainer.Net(), rank, batches=loader)
