"""The model of a Hugging Face Trainer returns no loss."""

# mypy: ignore-errors

import torch
from transformers import Trainer, TrainingArguments


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return {"x": torch.randn(16)}


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 2)

    def forward(self, x):
        return {"logits": self.layer(x)}


arguments = TrainingArguments("out", max_steps=4, use_cpu=True, report_to=[], remove_unused_columns=False)
Trainer(Plain(), arguments, train_dataset=Rows()).train()
