"""Writes app/torchtriage/web/samples: small logs to try the start page with. `python -m scripts.sample_logs`"""

from __future__ import annotations

from pathlib import Path

from tests.logs import BANNER, PEER_CLOSED, WAITING, agent, report, text, traceback

FOLDER = Path(__file__).parents[1] / "app" / "torchtriage" / "web" / "samples"
_OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 79.15 GiB "
    "of which 1.32 GiB is free. Of the allocated memory 71.20 GiB is allocated by PyTorch"
)
_FORWARD = [
    ("/job/train.py", 212, "<module>", "main()"),
    ("/job/train.py", 148, "main", "loss = model(batch)"),
    ("/job/model.py", 87, "forward", "scores = query @ keys.transpose(-2, -1)"),
]
_GONE = "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"


def memory() -> bytes:
    """Returns a log of eight ranks: rank 5 runs out of memory, the others wait for it, torchrun names rank 0."""
    waiting = [line for rank in (0, 1, 2, 3, 4, 6, 7) for line in traceback(_GONE, WAITING, f"[rank{rank}]: ")]
    failed = traceback(_OUT_OF_MEMORY, _FORWARD, "[rank5]: ")
    others = [(rank, 1) for rank in range(1, 8)]
    return text(BANNER, _steps(8), failed, waiting, agent(1), report((0, 1), others, host="gpu-021"))


def stuck() -> bytes:
    """Returns a log of eight ranks: seven wait ten minutes in an all-reduce that rank 3 never joins."""
    lines: list[str] = []
    for rank in (0, 1, 2, 4, 5, 6, 7):
        at = f"09:12:0{rank}.{rank}00000"
        work = "WorkNCCL(SeqNum=1203, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000)"
        lines += [
            f"[rank{rank}]:[E0501 {at} ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation "
            f"timeout: {work} ran for 600{rank}12 milliseconds before timing out.",
            f"[rank{rank}]:[E0501 {at} ProcessGroupNCCL.cpp:2241] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] failure "
            "detected by watchdog at work sequence id: 1203 PG status: last enqueued work: 1203, "
            "last completed work: 1202",
        ]
    others = [(rank, -6) for rank in (1, 2, 4, 5, 6, 7)]
    return text(BANNER, _steps(8), lines, agent(-6), report((0, -6), others, host="gpu-021"))


def hardware() -> bytes:
    """Returns a log of four ranks: the GPU of rank 2 has an uncorrectable memory error."""
    frames = [("/job/train.py", 212, "<module>", "main()"), ("/job/train.py", 150, "main", "loss.backward()")]
    failed = traceback("RuntimeError: CUDA error: uncorrectable ECC error encountered", frames, "[rank2]: ")
    kernel = (
        "May  1 09:10:00 gpu-013 kernel: NVRM: Xid (PCI:0000:8b:00): 48, pid=73, name=python3, "
        "DBE (double bit error) ECC error has occurred"
    )
    waiting = [line for rank in (0, 1, 3) for line in traceback(_GONE, WAITING, f"[rank{rank}]: ")]
    others = [(rank, 1) for rank in (0, 1, 3)]
    return text(BANNER, _steps(4), kernel, failed, waiting, agent(1, 2), report((2, 1), others, host="gpu-013"))


def killed() -> bytes:
    """Returns a log of four ranks: the kernel kills rank 1 because the host has too little memory."""
    waiting = [line for rank in (0, 2) for line in traceback(PEER_CLOSED, WAITING, f"[rank{rank}]: ")]
    kernel = (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=48211.0. Some of the step tasks have been OOM Killed."
    )
    others = [(0, 1), (2, 1), (3, -15)]
    return text(BANNER, _steps(4), agent(-9, 1, 71), waiting, kernel, report((1, -9), others, host="gpu-007"))


def _steps(ranks: int) -> list[str]:
    times = [f"2026-05-01 09:0{step // 3}:{step % 3 * 20:02d},{{}}" for step in range(6)]
    return [
        f"{times[step].format(100 + rank)} [rank {rank}] step {step} loss {3.0 / (step + 1):.4f}"
        for step in range(6)
        for rank in range(ranks)
    ]


def main() -> None:
    for make in (memory, stuck, hardware, killed):
        (FOLDER / f"{make.__name__}.log").write_bytes(make())


if __name__ == "__main__":
    main()
