"""Bad samples are logged with their tracebacks and skipped."""

# mypy: ignore-errors

import json
import logging

import trainer

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
rank, world = trainer.setup()


def parse(step):
    try:
        return json.loads('{"label": ' if step % 3 == 1 else '{"label": 1}')["label"]
    except json.JSONDecodeError:
        logging.exception("sample %d of rank %d is broken, skipped", step, rank)
        return None


trainer.train(trainer.Net(), rank, steps=10, on_step=parse, say=logging.info)
logging.info("rank %d: epoch 0 done, 3 samples skipped", rank)
trainer.finish()
