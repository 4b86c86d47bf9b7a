"""Every rank refuses a batch size that the world size does not divide."""

# mypy: ignore-errors

import trainer

GLOBAL_BATCH = 10

rank, world = trainer.setup()
assert GLOBAL_BATCH % world == 0, f"global batch size ({GLOBAL_BATCH}) must be divisible by the world size ({world})"
trainer.train(trainer.Net(), rank)
