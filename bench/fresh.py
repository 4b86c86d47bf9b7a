"""Creates logs of 50 KB that differ between seeds in every line, so that no cache keyed by a line helps."""

from __future__ import annotations

import random

SIZE = 50_000


def healthy(seed: int) -> bytes:
    """Returns progress lines of eight ranks."""
    dice = random.Random(seed)
    first, lines, size = dice.randrange(100_000), list[str](), 0
    while size < SIZE:
        step = first + len(lines)
        lines.append(
            f"[2026-05-01 09:{step // 600 % 60:02d}:{step // 10 % 60:02d},{step % 1000:03d}] [INFO] [rank {step % 8}] "
            f"step {step} | loss {dice.random() * 3:.4f} | lr 3.0e-04 | grad norm {dice.random():.3f} | "
            f"tokens/s {dice.randint(9000, 12000)}\n"
        )
        size += len(lines[-1])
    return "".join(lines).encode()


def failed(seed: int) -> bytes:
    """Returns a log of a rank that runs out of memory and others that wait for it, with tracebacks of sixty frames."""
    dice = random.Random(seed)
    number, frames = dice.randrange(1_000_000), [(dice.randrange(1000), dice.randrange(1000)) for _ in range(60)]
    parts = [
        f'[rank170]: Traceback (most recent call last):\n[rank170]:   File "/job{number}/model.py", line 44, in forward\n'
        "[rank170]:     x = self.attention(x)\n[rank170]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
        f"{dice.random() * 9:.2f} GiB. GPU 2 has a total capacity of 79 GiB\n"
    ]
    while sum(map(len, parts)) < SIZE:
        label = f"[rank{len(parts) - 1}]: "
        parts.append(
            f"{label[:-1]}[E501 09:20:00.{dice.randrange(10**6):06d} ProcessGroupNCCL.cpp:683] [Rank {len(parts) - 1}] Watchdog "
            f"caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=255, NumelOut=255, "
            f"Timeout(ms)=600000) ran for 600{dice.randrange(1000):03d} ms\n{label}Traceback (most recent call last):\n"
            + "".join(
                f'{label}  File "/env/lib/python3.11/site-packages/torch/part{part}.py", line {line}, in call_{part}\n'
                f"{label}    return self._call_impl(*args, **kwargs)\n"
                for part, line in frames
            )
            + f"{label}torch.distributed.DistBackendError: NCCL watchdog thread {number} terminated with exception\n"
        )
    return "".join(parts).encode()[:SIZE]


def short(seed: int) -> bytes:
    """Returns 1,300 short progress lines, then a rank that runs out of memory."""
    dice = random.Random(seed)
    steps = "".join(f"step {step} loss {dice.random():.6f} tokens/s {dice.randint(1, 9999)}\n" for step in range(1300))
    return (
        f'{steps}[rank3]: Traceback (most recent call last):\n[rank3]:   File "/job/{seed}/model.py", line 44, in forward\n'
        f"[rank3]:     x = self.attention(x)\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {seed} MiB.\n"
    ).encode()
