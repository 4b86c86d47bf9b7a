"""How the watcher shall watch; read once at the edge and passed in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchtriage.client.torchtriage_client import Settings


@dataclass(frozen=True, slots=True)
class Options:
    """`client`: where to report. `folder`: what must survive a restart. `namespaces`: all where it is empty. Times are
    seconds: `settle` how long the other pods of a failed job may take to end, `quiet` how long nothing more has to
    happen then, `echo` how long after a report what still ran belongs to it, `oldest` how old a failure may be, `tick`
    what lies between two looks at what is due, and before the first new try of a watch that broke off."""

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
