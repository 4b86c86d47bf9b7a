"""Rank 1 has two batches fewer and is done before the rest."""

# mypy: ignore-errors

import trainer

rank, world = trainer.setup(timeout=20)
trainer.train(trainer.Net(), rank, steps=6 if rank == 1 else 8)
print(f"rank {rank} finished its epoch")
