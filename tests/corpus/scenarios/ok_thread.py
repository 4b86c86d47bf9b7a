"""An upload in a thread fails; training does not care."""

# mypy: ignore-errors

import threading
import time

import trainer

rank, world = trainer.setup()


def upload():
    raise ConnectionResetError(104, "Connection reset by peer")


def on_step(step):
    if rank == 0 and step == 3:
        threading.Thread(target=upload, name="uploader").start()
    time.sleep(0.05)


trainer.train(trainer.Net(), rank, on_step=on_step)
if rank == 0:
    print("training finished")
trainer.finish()
