"""Warnings of all sorts and alarming words, in a run that is well."""

# mypy: ignore-errors

import logging
import warnings

import torch

import trainer

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
rank, world = trainer.setup()
log = logging.getLogger("job")
log.info("options: abort_on_nan=False, error_if_nonfinite=False, ignore_errors=True, timeout=1800, killed_after=None")
log.warning("could not find libibverbs, falling back to TCP")
log.error("wandb: failed to sync, will retry in the background")
torch.nn.Softmax()(torch.ones(2))
warnings.warn("RuntimeError: CUDA out of memory was seen in an earlier job; expandable segments are on")
scheduler = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(trainer.Net().parameters(), 0.1), 1)
scheduler.step()
trainer.train(trainer.Net(), rank, say=log.info)
log.info("class 'fatal error' AP nan, class 'segmentation fault' AP 0.31, class 'killed' AP 0.28")
log.info("tests: 0 failed, 12 passed; exit code 0")
trainer.finish()
