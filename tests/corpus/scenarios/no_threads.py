"""The user's limit on processes leaves no room for another thread."""

# mypy: ignore-errors

import os
import resource
import threading
import time

import trainer

rank, world = trainer.setup()


def on_step(step):
    if rank == 0 and step == 3:
        if os.getuid() == 0:
            os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        for _ in range(8):
            threading.Thread(target=time.sleep, args=(1,), daemon=True).start()


trainer.train(trainer.Net(), rank, on_step=on_step)
