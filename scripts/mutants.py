"""Mutation tests: changes one line of the engine in a copy, and runs the tests that must fail then.

`python -m scripts.mutants`, optionally with numbers of mutants. The exit status is 1 if the tests pass with a mutant.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """A line of a file in `app/torchtriage`, its replacement, and the tests that must fail."""

    file: str
    old: str
    new: str
    tests: str


MUTANTS = (
    Mutant("causality/rank_attribution.py", "return min(left, key=lambda event: event.line.position",
           "return max(left, key=lambda event: event.line.position", "engine/test_rank_attribution.py"),
    Mutant("causality/consequences.py", "first.position <= second.position", "first.position >= second.position",
           "engine/test_causality.py"),
    Mutant("causality/survived.py", "if after < len(terminal) and terminal[after] < end else None",
           "if after < len(terminal) else None", "engine/test_survived.py"),
    Mutant("runs/read_runs.py", "if self.reader.ended or (self.reader.has_started and",
           "if self.reader.ended or (False and", "engine/test_engine.py engine/test_endings.py"),
    Mutant("matching/near_matches.py", "if _negates(words, message.words) or _negates(message.words, words):",
           "if False:", "engine/test_near_matches.py"),
    Mutant("answer/case_selection.py", "for places in (sorted({*own, *branches}),", "for places in (sorted({*own}),",
           "engine/test_case_selection.py"),
    Mutant("answer/templates.py", "if slots(part[1]) <= values.keys() else", "if slots(part[1]) & values.keys() else",
           "engine/test_templates.py"),
    Mutant("reading/redaction/redact.py", "end = max(end, one[1])", "end = one[1]", "reading/test_redact.py"),
    Mutant("causality/fingerprint.py", "elif raised is not None and _of_the_program(entry):",
           "elif raised is not None:", "engine/test_fingerprint.py"),
    Mutant("causality/ending.py", "since = max(self._last_good_line(end), got_over)",
           "since = self._last_good_line(end)", "engine/test_endings.py"),
)  # fmt: skip


def dies(mutant: Mutant, copy: Path) -> bool:
    """Returns whether a test fails after the line is changed in a copy of the repository."""
    file = copy / "app" / "torchtriage" / mutant.file
    whole = file.read_text("utf-8")
    if whole.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.file} holds this not once: {mutant.old}")
    file.write_text(whole.replace(mutant.old, mutant.new), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow"]
    done = subprocess.run(
        [*command, *(f"tests/{name}" for name in mutant.tests.split())], cwd=copy, capture_output=True, text=True
    )
    file.write_text(whole, "utf-8")
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    return done.returncode == 1


def main() -> int:
    wanted = [MUTANTS[int(number) - 1] for number in sys.argv[1:]] or MUTANTS
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("app", "tests", "knowledge_base", "migrations", "pyproject.toml", "scripts", "bench", "docs"):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        for mutant in wanted:
            dead = dies(mutant, copy)
            alive += not dead
            print(f"{'dead ' if dead else 'ALIVE'} {mutant.file}: {mutant.new}", flush=True)
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main())
