"""The first attempt is killed; the second runs to the end."""

# mypy: ignore-errors

import os
import signal

import trainer

rank, world = trainer.setup(timeout=15)
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"


def on_step(step):
    if first and step == 4:
        os.kill(os.getpid(), signal.SIGKILL)


trainer.train(trainer.Net(), rank, on_step=on_step)
if rank == 0:
    print("training finished, best accuracy 0.713")
trainer.finish()
