"""Makes docs/incident.png, the picture in the README, from a running service: `python -m scripts.readme_picture URL`"""

from __future__ import annotations

import sys
from pathlib import Path

import httpx2
from playwright.sync_api import sync_playwright

from tests import browser as browsers
from tests.logs import BANNER, WAITING, agent, report, steps, text, traceback

_OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 79.15 GiB "
    "of which 1.32 GiB is free. Of the allocated memory 71.20 GiB is allocated by PyTorch"
)
_FORWARD = [
    ("/job/train.py", 212, "<module>", "main()"),
    ("/job/train.py", 148, "main", "loss = model(batch)"),
    ("/job/model.py", 87, "forward", "scores = query @ keys.transpose(-2, -1)"),
]
_CLOSED = "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"


def log() -> bytes:
    """-> a run of eight ranks: rank 5 runs out of memory, the others wait for it, torchrun names rank 0."""
    waiting = [line for rank in (0, 1, 2, 3, 4, 6, 7) for line in traceback(_CLOSED, WAITING, f"[rank{rank}]: ")]
    failed = traceback(_OUT_OF_MEMORY, _FORWARD, "[rank5]: ")
    others = [(rank, 1) for rank in range(1, 8)]
    return text(BANNER, steps(range(8)), failed, waiting, agent(1), report((0, 1), others, host="gpu-021"))


def main() -> None:
    url = sys.argv[1].rstrip("/")
    job = {
        "job_id": "48211",
        "job_name": "llama-ft",
        "cluster": "a100",
        "user": "mia",
        "scheduler": "slurm",
        "gpus": "8",
    }
    answer = httpx2.post(f"{url}/api/v1/incidents", params=job, content=log(), headers={"content-type": "text/plain"})
    answer.raise_for_status()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers.find_chromium(), args=browsers.FLAGS)
        page = browser.new_page(viewport={"width": 1240, "height": 900}, color_scheme="light")
        page.goto(f"{url}/incidents/{answer.json()['id']}")
        page.screenshot(path=Path(__file__).parents[1] / "docs" / "incident.png")
        browser.close()


if __name__ == "__main__":
    main()
