"""Frames are cut with a program that is not installed."""

# mypy: ignore-errors

import subprocess

import trainer

rank, world = trainer.setup()
if rank == 0:
    subprocess.run(["ffmpeg", "-i", "clip.mp4", "frames/%05d.png"], check=True)
trainer.train(trainer.Net(), rank)
