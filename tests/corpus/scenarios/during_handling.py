"""No cache is normal; the code that then builds it has a bug."""

# mypy: ignore-errors

import pickle

import trainer


def build_index(root, depth):
    return {root: depth}


def index(root):
    try:
        return pickle.load(open(f"{root}/index.pkl", "rb"))
    except FileNotFoundError:
        return build_index(root)


rank, world = trainer.setup()
index("cache")
trainer.train(trainer.Net(), rank)
