"""Loads the service with 50 KB logs: `python -m bench.service_load [--seconds 15] [--postgres] [--upload 1000]`.

Prints one row per server: the service on SQLite (and on Postgres with --postgres), each also while logs of so many MB are
uploaded; and, for comparison in the same run, a route that only writes the body to a file with fsync. The columns are
rate, median and 99th percentile of the response times at full load; how many of the waiting logs are triaged per second
afterwards; the percentiles at half load; and the server's own CPU time without the triage processes. On a shared machine,
the CPU time is the reliable figure. Every log is different, and all are written with fsync.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests import postgres as servers

CLIENTS = 8
_fresh = itertools.count(step=1_000_000)  # the number at which each load begins to count its logs
SERVE = [str(Path(sys.executable).with_name("torchtriage")), "serve", "--port"]
PLAIN = """
import os, sys, tempfile, uvicorn
from fastapi import FastAPI, Request
app = FastAPI()
@app.post("/api/v1/incidents", status_code=201)
async def keep(request: Request):
    handle, name = tempfile.mkstemp(dir=sys.argv[1])
    os.write(handle, await request.body())
    os.fsync(handle)
    os.close(handle)
    return {"id": name}
uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
"""


def logs(first: int = 0) -> Iterator[bytes]:
    """Yields different logs of 50 KB: progress, then a rank that runs out of memory."""
    dice = random.Random(1)
    progress = "".join(
        f"step {step} loss {dice.random():.6f} tokens/s {dice.randint(1, 9999)}\n" for step in range(1300)
    ).encode()
    for number in itertools.count(first):
        yield (
            b"run %d\n%b" % (number, progress)
            + (
                f'[rank3]: Traceback (most recent call last):\n[rank3]:   File "/job/{number}/model.py", line 44, in forward\n'
                f"[rank3]:     x = self.attention(x)\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {number} MiB.\n"
            ).encode()
        )


@contextmanager
def serving(command: list[str], port: int, environment: dict[str, str]) -> Iterator[int]:
    """Gives the process id of a server that responds."""
    process = subprocess.Popen(
        command, env=os.environ | {"TRIAGE_LOG_LEVEL": "error"} | environment, stdout=subprocess.DEVNULL
    )
    try:
        while True:
            assert process.poll() is None, "the server did not start"
            try:
                ask(port, "GET", "/healthz", b"")
                break
            except OSError:
                time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def ask(port: int, method: str, path: str, body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body)
    status = connection.getresponse().status
    connection.close()
    return status


def load(port: int, seconds: float, rate: float | None) -> tuple[float, list[float], int]:
    """Returns responses per second, their times in seconds, and how many were not 2xx. `rate` is the target per second;
    None means as fast as possible."""
    source, lock = logs(next(_fresh)), threading.Lock()
    times: list[float] = []
    bad = 0
    began = time.perf_counter()
    turn = 0

    def work() -> None:
        nonlocal bad, turn
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            with lock:
                body = next(source)
                due = began + turn / rate if rate else 0
                turn += 1
            time.sleep(max(0.0, due - time.perf_counter()))
            sent = time.perf_counter()
            if sent - began > seconds:
                return
            connection.request("POST", "/api/v1/incidents?wait=0", body)
            answer = connection.getresponse()
            answer.read()
            with lock:
                times.append(time.perf_counter() - sent)
                bad += answer.status >= 300

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(times) / (time.perf_counter() - began), times, bad


def row(name: str, port: int, seconds: float, process: int) -> str:
    worked = processor_seconds(process)
    rate, times, bad = load(port, seconds, None)
    worked = processor_seconds(process) - worked
    drained = drain(port)
    _, half_times, half_bad = load(port, seconds, rate / 2)
    cells = [
        f"{rate:.0f}",
        *map(percentile, (times, times), (50, 99)),
        f"{drained:.0f}" if drained else "",
        *map(percentile, (half_times, half_times), (50, 99)),
        str(bad + half_bad),
        f"{worked / len(times) * 1000:.1f}",
    ]
    return f"| {name} | " + " | ".join(cells) + " |"


def drain(port: int) -> float | None:
    """Returns the logs triaged per second until none waits. None if there is no queue."""
    began, waiting = time.perf_counter(), waits(port)
    while waits(port):
        time.sleep(0.5)
    return waiting / (time.perf_counter() - began) if waiting else None


def waits(port: int) -> float:
    """Returns how many logs wait for triage."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    told = connection.getresponse().read().decode()
    connection.close()
    found = re.search(r"^torchtriage_queue_depth (\S+)", told, re.MULTILINE)
    return float(found[1]) if found else 0


def processor_seconds(process: int) -> float:
    """Returns the CPU seconds of a process, without its child processes."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def uploading(port: int, megabytes: int) -> Iterator[None]:
    """Uploads one large log again and again inside the `with` block, because a single upload may be too quick."""
    piece = b"".join(itertools.islice(logs(next(_fresh)), 20))
    ended = threading.Event()

    def pieces(number: int) -> Iterator[bytes]:
        yield b"upload %d\n" % number
        for _ in range(megabytes * 1_000_000 // len(piece)):
            if ended.is_set():
                return
            yield piece

    def send() -> None:
        for number in itertools.count():
            if ended.is_set():
                return
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            connection.request("POST", "/api/v1/incidents?wait=0", pieces(number), encode_chunked=True)
            assert connection.getresponse().status < 300
            connection.close()

    thread = threading.Thread(target=send)
    thread.start()
    yield
    ended.set()
    thread.join()


def percentile(times: list[float], share: int) -> str:
    return f"{statistics.quantiles(times, n=100)[share - 1] * 1000:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--postgres", action="store_true", help="on a Postgres of its own too")
    parser.add_argument(
        "--upload", type=int, default=1000, help="MB of the logs that are sent meanwhile; 0 leaves it out"
    )
    options = parser.parse_args()
    print(
        "| server | posts/s | p50 ms | p99 ms | drained/s | p50 ms at half | p99 ms at half | errors | processor ms a post |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    for name in ("SQLite", "Postgres") if options.postgres else ("SQLite",):
        for upload in (0, options.upload) if options.upload else (0,):
            with ExitStack() as stack:
                settings = {"TRIAGE_DATA_DIR": stack.enter_context(tempfile.TemporaryDirectory())}
                if name == "Postgres":
                    settings["TRIAGE_DATABASE_URL"] = stack.enter_context(a_postgres())
                process = stack.enter_context(serving([*SERVE, "18431"], 18431, settings))
                told = f"torchtriage on {name}"
                if upload:
                    stack.enter_context(uploading(18431, upload))
                    told += f", a log of {upload} MB meanwhile"
                print(row(told, 18431, options.seconds, process), flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving([sys.executable, "-c", PLAIN, folder, "18432"], 18432, {}) as process,
    ):
        print(row("a route that stores the body", 18432, options.seconds, process), flush=True)


@contextmanager
def a_postgres() -> Iterator[str]:
    """Gives the URL of an empty database on a server with fsync."""
    programs = servers.find_programs()
    assert programs is not None, servers.MISSING
    with servers.PostgresServer(programs, durable=True) as server, server.database() as url:
        yield url


if __name__ == "__main__":
    main()
