"""Evidence beside the logs of a run: dumps of PyTorch's flight recorder and stacks in, the hang they explain out."""
