"""A module tree that holds itself is walked without end."""

# mypy: ignore-errors

import sys

import trainer


def count(module):
    return sum(p.numel() for p in module["own"]) + sum(count(child) for child in module["children"])


rank, world = trainer.setup()
net = trainer.Net()
tree = {"own": list(net.parameters()), "children": []}
tree["children"].append(tree)
sys.setrecursionlimit(200)
print("parameters:", count(tree))
trainer.train(net, rank)
