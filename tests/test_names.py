"""Names in the engine: a word means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.command_process import ROOT

_LAYERS = ("domain", "reading", "parsing", "facts", "evidence", "matching", "runs", "causality", "answer")


def test_no_two_classes_of_the_engine_have_the_same_name() -> None:
    package = ROOT / "app" / "torchtriage"
    defined: dict[str, list[str]] = defaultdict(list)
    for layer in _LAYERS:
        for path in sorted((package / layer).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    defined[node.name].append(str(path.relative_to(package)))
    assert len(defined) > 200
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}
