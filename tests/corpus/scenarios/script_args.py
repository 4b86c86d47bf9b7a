"""The script's own options, parsed before anything else."""

# mypy: ignore-errors

import argparse

import trainer

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--amp", choices=("off", "bf16"), default="off")
args = parser.parse_args()
rank, world = trainer.setup()
trainer.train(trainer.Net(), rank, steps=args.steps)
trainer.finish()
