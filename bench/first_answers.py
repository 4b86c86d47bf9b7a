"""Measures each page's first response after a start: `python -m bench.first_answers FOLDER`, a data directory of the
demo.

For each page, a new process opens the service and requests the page once, then again and again. Prints a row per page:
milliseconds of CPU and wall time of the first response, and the median CPU time of the later ones.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

from fastapi.testclient import TestClient

from torchtriage.settings import Settings
from torchtriage.web.app import create_app

PAGES = ("/login", "/", "/?sample=stuck", "/incidents", "/incidents?q=nccl", "/incidents/1", "/incidents/1.md", "/incidents/1/log",
         "/groups", "/groups/1", "/unexplained", "/dashboard", "/dashboard?days=365", "/hosts", "/knowledge", "/knowledge?q=shm",
         "/knowledge/cuda.oom", "/settings", "/retriage", "/nothing/here")  # fmt: skip
_MORE = 9


def measure(folder: Path, path: str) -> None:
    """Prints the row of one page, using a new service."""
    settings = Settings(data_dir=folder, workers=0)
    with TestClient(create_app(settings), headers={"Accept": "text/html"}, base_url="http://127.0.0.1") as client:
        client.get("/readyz")
        time.sleep(1)  # work in the background after a start does not belong to the page
        (first, wall), *more = [_answered(client, path) for _ in range(1 + _MORE)]
    print(f"| {path} | {first:.0f} | {wall:.0f} | {statistics.median(one for one, _ in more):.0f} |", flush=True)


def _answered(client: TestClient, path: str) -> tuple[float, float]:
    processor, wall = time.process_time(), time.perf_counter()
    client.get(path)
    return (time.process_time() - processor) * 1000, (time.perf_counter() - wall) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pages", nargs="*", default=PAGES)
    given = parser.parse_args()
    print("| page | first, processor ms | first, wall ms | later, processor ms |\n|---|---|---|---|", flush=True)
    for path in given.pages:
        child = os.fork()
        if child == 0:
            measure(given.folder, path)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
