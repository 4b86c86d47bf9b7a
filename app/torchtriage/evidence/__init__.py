"""Evidence next to the logs of a run. Reads dumps of PyTorch's flight recorder and stacks, and finds the hang that they
explain."""
