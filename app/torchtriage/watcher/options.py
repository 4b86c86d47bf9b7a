"""The options of the watcher. They are read once at the start and passed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchtriage.client.torchtriage_client import Settings


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one watcher; times are in seconds.

    `client` says where to report. `folder` keeps what must survive a restart. No `namespaces` means all. `settle` is
    how long the other pods of a failed job may take to end, and `quiet` how long nothing must change before a report. A
    pod that was still running at a report and ends within `echo` belongs to that report. Failures older than `oldest`
    are ignored. `tick` is the time between two checks, and before the first retry of an interrupted watch.
    """

    client: Settings
    folder: Path
    namespaces: tuple[str, ...] = ()
    selector: str = ""
    bare: str = ""
    users: tuple[str, ...] = ()
    least_gpus: int = 0
    most_reports: int = 20
    settle: float = 120.0
    quiet: float = 5.0
    echo: float = 2100.0
    oldest: float = 86400.0
    tick: float = 0.5
    port: int = 9090
    host: str = ""

    @property
    def attempts(self) -> Path:
        return self.folder / "attempts"

    @property
    def spool(self) -> Path:
        return Path(self.client.spool)
