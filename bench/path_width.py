"""Measures how much code one log passes through: `python -m bench.path_width LOG…` prints for each log the modules of
the package whose code runs in a warm `Engine.triage`, the calls into them, and their nesting. Then prints files, lines
and modules with a single importer, of the package and of the engine's layers."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import torchtriage
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.loader import load
from torchtriage.reading.sources import open_path

PACKAGE = Path(torchtriage.__file__).parent
ENGINE = ("answer", "causality", "domain", "engine", "evidence", "facts", "matching", "parsing", "reading")


class CodePath:
    """What `sys.setprofile` sees of the package."""

    def __init__(self) -> None:
        self.calls = Counter[str]()
        self.deepest = self._depth = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if not frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            return
        if event == "call":
            self._depth += 1
            self.deepest = max(self.deepest, self._depth)
            self.calls[frame.f_code.co_filename] += 1
        elif event == "return":
            self._depth -= 1


def path_of(engine: Engine, log: Path) -> CodePath:
    """Returns the code that a second triage of the log runs."""
    engine.triage(open_path(log))
    seen = CodePath()
    sys.setprofile(seen)
    try:
        engine.triage(open_path(log))
    finally:
        sys.setprofile(None)
    return seen


def importers() -> dict[str, set[str]]:
    """Returns, for each module, the modules that import it."""
    names = {_name(path): path for path in PACKAGE.rglob("*.py")}
    found: dict[str, set[str]] = {name: set() for name, path in names.items() if path.stem != "__init__"}
    for name, path in names.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            wanted = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                wanted = [f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)]
            for one in wanted:
                if one in found and one != name:
                    found[one].add(name)
    return found


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main() -> None:
    engine = Engine(load([BUILT_IN]))
    print("log | modules | calls | depth\n---|---|---|---")
    for log in map(Path, sys.argv[1:]):
        seen = path_of(engine, log)
        print(f"{log} | {len(seen.calls)} | {seen.calls.total()} | {seen.deepest}")
    known = importers()
    print("\nlayers | files | lines | with one importer\n---|---|---|---")
    for layers, chosen in (("all", known), ("engine", [name for name in known if name.split(".")[1] in ENGINE])):
        lines = sum(len((PACKAGE.parent / f"{name.replace('.', '/')}.py").read_text().splitlines()) for name in chosen)
        print(f"{layers} | {len(chosen)} | {lines} | {sum(len(known[name]) == 1 for name in chosen)}")


if __name__ == "__main__":
    main()
