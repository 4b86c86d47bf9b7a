"""Logs that tests of the pages hand in."""

OOM = (
    "[rank3]: Traceback (most recent call last):\n"
    '[rank3]:   File "/work/train.py", line 81, in forward\n'
    "[rank3]:     out = self.attention(x)\n"
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU 3 has a total capacity of 79.15 GiB of which 1.06 GiB is free. "
    "Of the allocated memory 64.30 GiB is allocated by PyTorch, and 12.87 GiB is reserved by PyTorch but unallocated.\n"
)
