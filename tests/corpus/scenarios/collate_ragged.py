"""Token lists of unequal length that nobody padded."""

# mypy: ignore-errors

import torch

import trainer


class Tokens(trainer.Pairs):
    def __getitem__(self, index):
        return {"input_ids": list(range(5 if index < 30 else 6 + index % 3)), "label": index % 10}


rank, world = trainer.setup()
loader = torch.utils.data.DataLoader(Tokens(), batch_size=8, num_workers=1)
trainer.train(trainer.Net(), rank, batches=((torch.randn(8, 16), row["label"]) for row in loader))
