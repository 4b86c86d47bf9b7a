"""Measures how many real hangs are explained: `python -m bench.hangs FOLDER... [--misses]`, with the output of `python
-m tests.corpus.hangs`. Prints a row for each kind and each number of ranks: in how many hangs the ranks at fault were
named exactly, only some of them, none, or a wrong one. If the evidence is not enough, as with two ranks that differ,
naming nobody is right."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torchtriage.engine import Engine
from torchtriage.knowledge.loader import load
from torchtriage.reading.sources import open_path


@dataclass(frozen=True)
class Judged:
    """The verdict on one hang. `told` is true if the evidence is enough to name the ranks at fault."""

    name: str
    kind: str
    ranks: int
    evidence: str
    at_fault: frozenset[int]
    told: bool
    named: frozenset[int]
    says: str

    @property
    def result(self) -> str:
        """Returns exact, partly (some of those at fault), silent if nobody was named, or wrong. `even` means that
        naming nobody is right."""
        if not self.named:
            return "silent" if self.told else "even"
        if self.named == self.at_fault:
            return "exact"
        return "partly" if self.named < self.at_fault else "wrong"


def judged(folders: list[Path]) -> Iterator[Judged]:
    """Yields each case of the folders with the verdict."""
    engine = Engine(load())
    for path in sorted(path for folder in folders for path in folder.glob("*/case.json")):
        case = json.loads(path.read_text())
        verdict = engine.triage(open_path(path.parent / "evidence"))
        says = f"{verdict.root_cause.entry if verdict.root_cause else None}: {verdict.answer.says if verdict.answer else ''}"
        yield Judged(
            case["name"], case["kind"], case["ranks"], case["evidence"], frozenset(case["at_fault"]), case["told"],
            frozenset(verdict.run.suspect_ranks), says,
        )  # fmt: skip


def table(cases: list[Judged], head: str, by: Callable[[Judged], object]) -> list[str]:
    """Returns the rows of a Markdown table."""
    rows = [
        f"| {head} | hangs | named exactly | some of several | another rank | nobody | rightly nobody |",
        "|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys([*sorted({by(case) for case in cases}, key=lambda key: (str(type(key)), key)), None]):
        found = Counter(case.result for case in cases if key is None or by(case) == key)
        name = "all" if key is None else key
        rows.append(
            f"| {name} | {found.total()} | {found['exact']} | {found['partly']} | {found['wrong']} | {found['silent']}"
            f" | {found['even']} |"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    cases = list(judged(options.folders))
    for head, by in (
        ("kind", lambda case: case.kind),
        ("ranks", lambda case: case.ranks),
        ("evidence", lambda case: case.evidence),
    ):
        print("\n".join(table(cases, head, by)), end="\n\n")
    told = [case for case in cases if case.told]
    print(f"{sum(case.result == 'exact' for case in told)} of {len(told)} named exactly where the evidence tells")
    for case in cases if options.misses else ():
        if case.result in ("partly", "wrong", "silent"):
            print(
                f"{case.result}: {case.name}, {case.ranks} ranks, {case.evidence}: {sorted(case.named)} for {sorted(case.at_fault)}; {case.says}"
            )


if __name__ == "__main__":
    main()
