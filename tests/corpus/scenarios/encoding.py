"""A vocabulary in Latin-1 is read as UTF-8."""

# mypy: ignore-errors

import pathlib

import trainer

pathlib.Path("labels.txt").write_bytes("chat\nchien\nâne\n".encode("latin-1"))
rank, world = trainer.setup()
with open("labels.txt", encoding="utf-8") as file:
    labels = file.read().splitlines()
trainer.train(trainer.Net(classes=len(labels)), rank)
