"""Kills the service under load and checks its data: `python -m bench.kill9 [--kills 200] [--postgres]`.

Clients post logs of all sizes while servers (and workers, with Postgres) are killed with SIGKILL at random moments and
restarted. Then checks that every acknowledged incident exists once and was triaged once, that its log is readable byte
for byte, and that the counts of groups are right. Exits with status 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import http.client
import json
import multiprocessing.process
import os
import random
import socket
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import postgres as servers
from torchtriage.cli.main import main as cli

SENDERS = 3
KNOWN = 'Traceback (most recent call last):\n  File "/job/train.py", line 44, in forward\n    x = f(x)\n'


# A server is killed more often than it takes to import one. So restarted ones are forks of an idle process that has
# imported all modules.
_FRESH = multiprocessing.get_context("forkserver")
_FRESH.set_forkserver_preload(
    [
        "torchtriage.cli.main",
        "torchtriage.cli.serve",
        "torchtriage.cli.worker",
        "torchtriage.web.app",
        "torchtriage.queue.postgres_queue",
    ]
)


@dataclass
class Part:
    """A server or worker that is restarted whenever it was killed."""

    command: list[str]
    environment: dict[str, str]
    process: multiprocessing.process.BaseProcess | None = None

    def start(self) -> None:
        self.process = _FRESH.Process(target=_run, args=(self.command, self.environment))
        self.process.start()

    def kill(self) -> None:
        assert self.process is not None
        assert self.process.is_alive(), f"{self.command} ended by itself with {self.process.exitcode}"
        self.process.kill()
        self.process.join()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        self.process.join()
        return self.process.exitcode or 0


def _run(command: list[str], environment: dict[str, str]) -> None:
    os.environ.update(environment)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    sys.exit(cli(command))


@dataclass
class Senders:
    """Posts logs until it is stopped. Records what was acknowledged, by incident."""

    ports: list[int]
    acknowledged: dict[str, str] = field(default_factory=dict)  # incident → sha256 of the log
    unsure: int = 0
    bad: collections.Counter[int] = field(default_factory=collections.Counter)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self, number: int) -> None:
        dice = random.Random(number)
        count = 0
        while not self.stopped.is_set():
            count += 1
            body = log_of(dice, f"{number}.{count}")
            try:
                status, answer = ask(dice.choice(self.ports), "POST", "/api/v1/incidents?wait=0", body)
            except ConnectionRefusedError:
                time.sleep(0.1)
                continue
            except (OSError, http.client.HTTPException):
                self.unsure += 1  # killed during the request: the log may be stored or not
                continue
            if status in (200, 201, 202):
                self.acknowledged[json.loads(answer)["id"]] = hashlib.sha256(body).hexdigest()
            else:
                self.bad[status] += 1
            time.sleep(dice.random())  # more logs than are triaged meanwhile would only make the end longer


def log_of(dice: random.Random, name: str) -> bytes:
    """Returns a unique log of some KB, sometimes of a few MB, in one of a few groups."""
    lines = dice.choice((20, 200, 1000, 1000, 60_000))
    progress = "".join(f"run {name} step {step} loss 2.5\n" for step in range(lines))
    return f"{progress}{KNOWN}RuntimeError: the {dice.choice('abc')}{dice.choice('abc')} part is gone\n".encode()


def ask(port: int, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def answers(port: int, seconds: float = 600) -> None:
    """Waits until a server is ready."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(OSError, http.client.HTTPException):
            if ask(port, "GET", "/readyz")[0] == 200:
                return
        time.sleep(0.05)
    raise SystemExit(f"nothing answers on port {port}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def torture(folder: Path, kills: int, postgres: bool, pause: float = 3, seed: int = 1) -> tuple[list[str], str]:
    """Returns what is wrong, and a sentence that describes what was done."""
    dice = random.Random(seed)
    with ExitStack() as stack:
        environment = {"TRIAGE_DATA_DIR": str(folder), "TRIAGE_LOG_LEVEL": "error", "TRIAGE_WORKERS": "1"}
        ports = [free_port() for _ in range(2 if postgres else 1)]
        parts = [Part(["serve", "--port", str(port)], environment) for port in ports]
        if postgres:
            programs = servers.find_programs()
            assert programs is not None, servers.MISSING
            environment["TRIAGE_DATABASE_URL"] = stack.enter_context(
                stack.enter_context(servers.PostgresServer(programs)).database()
            )
            parts.append(Part(["worker"], environment))
        for part in parts:
            part.start()
            stack.callback(part.stop)
        for port in ports:
            answers(port)
        senders = Senders(ports)
        threads = [threading.Thread(target=senders.run, args=(number,), daemon=True) for number in range(SENDERS)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        for _ in range(kills):
            time.sleep(dice.random() * pause)
            part = dice.choice(parts)
            part.kill()
            part.start()
            if part.command[0] == "serve" and dice.random() < 0.8:  # otherwise it is killed while it starts
                answers(int(part.command[-1]))
        for port in ports:
            answers(port)
        senders.stopped.set()
        for thread in threads:
            thread.join()
        told = (
            f"{kills} kills in {time.monotonic() - began:.0f} s, {len(senders.acknowledged)} incidents acknowledged, "
            f"{senders.unsure} requests cut off, answers that were no 2xx: {dict(senders.bad)}"
        )
        return wrong_with(ports[0], senders), told


def wrong_with(port: int, senders: Senders) -> list[str]:
    """Waits for the last triage. Returns everything that differs from what the service guarantees."""
    kept = settled(port)
    wrong = []
    for known, sha256 in senders.acknowledged.items():
        incident = kept.get(known)
        if incident is None:
            wrong.append(f"incident {known} is lost")
        elif incident["state"] != "triaged":
            wrong.append(f"incident {known} is {incident['state']}: {incident['failure']}")
        elif incident["log"]["sha256"] != sha256 or hashlib.sha256(read_log(port, incident)).hexdigest() != sha256:
            wrong.append(f"the log of incident {known} is another")
    digests = collections.Counter(incident["log"]["sha256"] for incident in kept.values())
    wrong += [f"the log {digest} is there {times} times" for digest, times in digests.items() if times > 1]
    counted = {group["id"]: group["count"] for group in pages(port, "/api/v1/groups?status=open")}
    held = collections.Counter(incident["group"]["id"] for incident in kept.values() if incident["group"])
    if counted != dict(held):
        wrong.append(f"groups count {counted} and hold {dict(held)}")
    return wrong


def settled(port: int) -> dict[str, Any]:
    """Returns all incidents, when none of them waits for triage."""
    while True:
        kept = {incident["id"]: incident for incident in pages(port, "/api/v1/incidents?limit=200")}
        if all(incident["state"] in ("triaged", "failed") for incident in kept.values()):
            return kept
        time.sleep(1)


def pages(port: int, path: str) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    while True:
        page = json.loads(ask(port, "GET", path + cursor)[1])
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def read_log(port: int, incident: dict[str, Any]) -> bytes:
    text, start = [], 1
    while start:
        piece = json.loads(ask(port, "GET", f"/api/v1/incidents/{incident['id']}/log?from={start}&lines=1000")[1])
        text += [line["text"] + "\n" for line in piece["lines"]]
        start = piece["next"]
    return "".join(text).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--postgres", action="store_true", help="two servers and a worker on Postgres (one on SQLite)")
    parser.add_argument("--pause", type=float, default=3, help="seconds between two kills, at most")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong, told = torture(Path(folder), options.kills, options.postgres, options.pause, options.seed)
    print(told)
    print("\n".join(wrong) or "nothing is lost, nothing is there twice, every log is what was sent")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
