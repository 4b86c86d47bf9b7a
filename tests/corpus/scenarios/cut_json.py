"""An annotation file that was cut while it was copied."""

# mypy: ignore-errors

import json
import pathlib

import trainer

rank, world = trainer.setup()
if rank == 1:
    pathlib.Path("annotations.json").write_text(json.dumps([{"id": n, "bbox": [0, 0, n, n]} for n in range(50)])[:700])
    annotations = json.load(open("annotations.json"))
trainer.train(trainer.Net(), rank)
