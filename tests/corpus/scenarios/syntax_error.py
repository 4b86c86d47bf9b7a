"""A merge left a bracket open in a module of the job."""

# mypy: ignore-errors

import pathlib

pathlib.Path("losses.py").write_text("import torch\n\ndef focal(logits, labels:\n    return torch.mean(logits)\n")
import trainer
import losses

rank, world = trainer.setup()
trainer.train(trainer.Net(), rank, loss_fn=losses.focal)
