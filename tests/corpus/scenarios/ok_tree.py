"""A run that ends well, with its output in a folder for each rank."""

# mypy: ignore-errors

import sys

import trainer

rank, world = trainer.setup()
print("retrying failed reads: 2 errors, 0 fatal", file=sys.stderr)
trainer.train(trainer.Net(), rank)
print(f"rank {rank} finished with 0 errors")
trainer.finish()
