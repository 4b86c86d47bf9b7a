"""Writes training logs for tests, in the formats of torchrun, Slurm and others, with our own content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NO_FAILURE = ("healthy", "inconclusive")  # outcomes of logs in which nothing failed
BANNER = "W0501 09:00:00.100000 41 torch/distributed/run.py:874] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default"


def steps(ranks: Iterable[int], first: int = 0, count: int = 20) -> list[str]:
    """Returns progress lines of healthy ranks."""
    ranks = list(ranks)
    return [
        f"[rank {rank}] step {step} loss {3.0 / (step + 1):.4f}"
        for step in range(first, first + count)
        for rank in ranks
    ]


def traceback(
    raised: str,
    frames: Sequence[tuple[str, int, str, str]] = (("/job/train.py", 30, "<module>", "main()"),),
    prefix: str = "",
) -> list[str]:
    """Returns a Python traceback; `frames` are (file, line, function, code)."""
    lines = ["Traceback (most recent call last):"]
    for file, line, function, code in frames:
        lines += [f'  File "{file}", line {line}, in {function}', f"    {code}"]
    return [prefix + line for line in [*lines, *raised.split("\n")]]


def agent(code: int, local_rank: int = 0, pid: int = 70) -> str:
    """Returns torchelastic's line about the first worker of a host that failed."""
    return (
        f"E0501 09:10:00.200000 41 torch/distributed/elastic/multiprocessing/api.py:1002] "
        f"failed (exitcode: {code}) local_rank: {local_rank} (pid: {pid}) of binary: /usr/bin/python3"
    )


def report(first: tuple[int, int], others: Iterable[tuple[int, int]] = (), host: str = "gpu-7") -> list[str]:
    """Returns torchelastic's report; `first` and `others` are (rank, exit code)."""

    def item(number: int, rank: int, code: int) -> list[str]:
        return [
            f"[{number}]:",
            "  time      : 2026-05-01_09:10:00",
            f"  host      : {host}",
            f"  rank      : {rank} (local_rank: {rank})",
            f"  exitcode  : {code} (pid: {70 + rank})",
            "  error_file: <N/A>",
            "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
        ]

    listed = [line for number, (rank, code) in enumerate(others, 1) for line in item(number, rank, code)]
    head = traceback(
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        [
            (
                "/env/lib/python3.11/site-packages/torch/distributed/launcher/api.py",
                383,
                "launch_agent",
                "raise ChildFailedError(",
            )
        ],
    )
    rule, dashes = "=" * 60, "-" * 60
    return [*head, rule, "train.py FAILED", dashes, "Failures:", *(listed or ["  <NO_OTHER_FAILURES>"]), dashes,
            "Root Cause (first observed failure):", *item(0, *first), rule]  # fmt: skip


def text(*parts: str | Sequence[str]) -> bytes:
    """Returns lines, and lists of lines, as one log."""
    lines = [line for part in parts for line in ([part] if isinstance(part, str) else part)]
    return ("\n".join(lines) + "\n").encode()


PEER_CLOSED = "RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.7]:2551"
WAITING = [
    ("/job/train.py", 44, "step", "loss.backward()"),
    ("/env/lib/python3.11/site-packages/torch/autograd/__init__.py", 347, "backward", "_engine_run_backward("),
]
