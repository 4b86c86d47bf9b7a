"""One process with a progress bar, for Ctrl-C."""

# mypy: ignore-errors

import time

from tqdm import tqdm

import trainer

trainer.note_pid(0)
net = trainer.Net()
for epoch in range(3):
    for step in tqdm(range(200), desc=f"epoch {epoch}"):
        images, labels = trainer.batch()
        net(images).sum().backward()
        time.sleep(0.1)
        if step == 20:
            tqdm.write("step 20 reached")
