"""A setting is asked for under a name that the configuration does not have."""

# mypy: ignore-errors

import trainer
from omegaconf import OmegaConf

config = OmegaConf.create({"model": {"width": 32}, "optim": {"lr": 0.1, "warmup": 10}})
OmegaConf.set_struct(config, True)
rank, world = trainer.setup()
net = trainer.Net(width=config.model.width)
trainer.train(net, rank, steps=config.optim.warmup_steps)
