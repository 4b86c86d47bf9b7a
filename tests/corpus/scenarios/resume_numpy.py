"""The checkpoint holds a number of numpy beside the tensors."""

# mypy: ignore-errors

import numpy as np
import torch

import trainer

rank, world = trainer.setup()
net = trainer.Net()
if rank == 0:
    torch.save({"model": net.state_dict(), "best": np.float64(0.81)}, "best.pt")
torch.distributed.barrier()
net.load_state_dict(torch.load("best.pt")["model"])
trainer.train(net, rank)
