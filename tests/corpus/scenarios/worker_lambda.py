"""A lambda as collate function, with workers that are spawned."""

# mypy: ignore-errors

import torch

import trainer

if __name__ == "__main__":
    rank, world = trainer.setup()
    loader = torch.utils.data.DataLoader(
        trainer.Pairs(), batch_size=8, num_workers=2, multiprocessing_context="spawn", collate_fn=lambda rows: rows
    )
    trainer.train(trainer.Net(), rank, batches=loader)
