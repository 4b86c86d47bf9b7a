"""A download is tried three times, with tracebacks, and works; later rank 0 writes a metric that is no number."""

# mypy: ignore-errors

import json
import logging

import torch

import trainer

logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | %(name)s | %(message)s")
log = logging.getLogger("data.sync")


def pull(attempt):
    if attempt < 2:
        raise ConnectionError("shard server closed the connection")
    return "ok"


rank, world = trainer.setup()
for attempt in range(3):
    try:
        pull(attempt)
        log.info("shards are in place")
        break
    except ConnectionError:
        log.exception("pulling the shards failed, trying again (%d of 3)", attempt + 1)


def on_step(step):
    if rank == 0 and step == 5:
        json.dumps({"step": step, "accuracy": torch.tensor(0.71)})


trainer.train(trainer.Net(), rank, on_step=on_step, say=log.info)
