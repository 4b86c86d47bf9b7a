"""Lightning with two processes and a layer outside the loss."""

# mypy: ignore-errors

import lightning
import torch

import trainer


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = trainer.Net()
        self.aux = torch.nn.Linear(4, 4)

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(trainer.Pairs(), batch_size=8)
    options = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, **options).fit(Module(), loader)
