"""Triages logs of runs that did not fail, to find signs that match too much."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from torchtriage.engine import Engine
from torchtriage.errors import UnreadableLog
from torchtriage.reading.sources import open_path


def runs_in(paths: Iterable[Path]) -> Iterator[Path]:
    """Yields the runs: each file, and each file or folder inside a folder. Hidden ones are left out."""
    for path in paths:
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        yield from (each for each in inside if not each.name.startswith("."))


def false_alarm(engine: Engine, run: Path, only: Collection[str] = ()) -> str | None:
    """Returns what the engine says failed in a run that did not fail, as one line, or None if it names no failure. If
    `only` is not empty, other entries do not count. Raises UnreadableLog with the name of the run."""
    try:
        verdict = engine.triage(open_path(run))
    except UnreadableLog as error:
        raise UnreadableLog(f"{run}: {error}") from None
    root = verdict.root_cause
    if root is None or (only and root.entry not in only):
        return None
    named = root.entry or "a failure without an entry"
    if root.entry and verdict.answer and verdict.answer.case:
        named += f"/{verdict.answer.case}"
    line = root.evidence[0]
    file = run / line.file if line.file and run.is_dir() else run
    return f"{file}:{line.line}: {named}: {line.text.strip()}"
