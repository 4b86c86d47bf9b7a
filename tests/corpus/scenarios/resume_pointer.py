"""The checkpoint is the pointer file that git lfs leaves where nobody pulled."""

# mypy: ignore-errors

import pathlib

import torch

import trainer

rank, world = trainer.setup()
if rank == 0:
    pathlib.Path("base.pt").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:" + "4d7a" * 16 + "\nsize 438012345\n"
    )
torch.distributed.barrier()
net = trainer.Net()
net.load_state_dict(torch.load("base.pt"))
trainer.train(net, rank)
