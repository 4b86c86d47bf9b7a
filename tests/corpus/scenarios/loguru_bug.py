"""loguru writes the traceback and the script leaves with status 1."""

# mypy: ignore-errors

import sys

import torch
from loguru import logger

import trainer

rank, world = trainer.setup()


def main():
    history = {"train": []}
    trainer.train(trainer.Net(), rank, steps=5, say=logger.info)
    logger.info("evaluating")
    if rank == 0:
        print(max(history["valid"]))
    torch.distributed.barrier()


try:
    main()
except KeyError:
    logger.exception("training failed")
    sys.exit(1)
