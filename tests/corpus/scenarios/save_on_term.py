"""Workers catch SIGTERM, save and go, as jobs on a queue do."""

# mypy: ignore-errors

import os
import signal
import sys
import time

import torch

import trainer

rank, world = trainer.setup()
net = trainer.Net()


def stop(number, frame):
    print(f"rank {rank}: got signal {number}, saving last.pt before the time is up", flush=True)
    if rank == 0:
        torch.save(net.state_dict(), "last.pt")
    sys.exit(0)


signal.signal(signal.SIGTERM, stop)
trainer.train(net, rank, steps=400, on_step=lambda step: time.sleep(0.2))
