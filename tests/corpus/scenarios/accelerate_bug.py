"""Under accelerate launch, a batch has no key of that name."""

# mypy: ignore-errors

import torch
from accelerate import Accelerator

import trainer

accelerator = Accelerator(cpu=True)
net = trainer.Net()
loader = torch.utils.data.DataLoader([{"pixels": torch.randn(16), "label": n % 10} for n in range(64)], batch_size=8)
net, loader, optimizer = accelerator.prepare(net, loader, torch.optim.AdamW(net.parameters()))
for step, row in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(net(row["pixels"]), row["labels"])
    accelerator.backward(loss)
    optimizer.step()
    accelerator.print(f"step {step} loss {loss.item():.4f}")
