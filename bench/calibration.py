"""Measures how often a verdict of each confidence is right: `python -m bench.calibration FOLDER... [--hidden]
[--misses]`.

Each folder below FOLDER with a `case.json` and `log.txt` (or `log/`) is a labelled case, in the form of tests/corpus.
Prints a row for each confidence: the number of verdicts, and the share that named an accepted entry. With `--hidden`,
each entry is removed from the knowledge base in turn and its own cases are read again, as for a failure that nobody has
described yet. Then another accepted entry, or none, is right. `--misses` lists the wrong verdicts.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.knowledge.loader import load
from torchtriage.reading.sources import open_path

SURE = ("certain", "likely", "possible")
NOT_EXPLAINED = "no entry named"


@dataclasses.dataclass(frozen=True)
class Labelled:
    """A case: its log, the right entry, and the other accepted entries; none if nothing failed."""

    name: str
    log: Path
    cause: str
    accepted: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Judged:
    """The verdict on a case: the entry, its confidence, and whether it is right."""

    case: Labelled
    entry: str | None
    sure: str
    right: bool


def labelled(folders: Iterable[Path]) -> Iterator[Labelled]:
    """Yields every case below the folders."""
    for folder in folders:
        for label in sorted(folder.rglob("case.json")):
            meta = json.loads(label.read_text(encoding="utf-8"))
            log = label.parent / "log"
            accepted = frozenset({meta["root_cause"], *meta["also_ok"]})
            log = log if log.is_dir() else label.parent / "log.txt"
            yield Labelled(label.parent.name, log, meta["root_cause"], accepted)


def judged(case: Labelled, verdict: Verdict, hidden: bool = False) -> Judged:
    """Compares the verdict with the label. Naming no entry is right if nothing failed, or if the entry is `hidden`."""
    root = verdict.root_cause
    if root is None or root.entry is None:
        return Judged(case, None, NOT_EXPLAINED, hidden or case.cause.startswith("none."))
    return Judged(case, root.entry, root.confidence, root.entry in case.accepted)


def with_all(cases: list[Labelled]) -> list[Judged]:
    """Returns the verdicts on all cases with the whole knowledge base."""
    engine = Engine(load())
    return [judged(case, engine.triage(open_path(case.log))) for case in cases]


def without_own(cases: list[Labelled]) -> list[Judged]:
    """Returns the verdicts on the failures, each without the entry of its label."""
    knowledge = load()
    found = []
    for hidden in sorted({case.cause for case in cases} & set(knowledge.entries)):
        rest = {name: entry for name, entry in knowledge.entries.items() if name != hidden}
        engine = Engine(dataclasses.replace(knowledge, entries=rest))
        found += [judged(case, engine.triage(open_path(case.log)), True) for case in cases if case.cause == hidden]
    return found


def table(verdicts: list[Judged]) -> str:
    """Returns a table with a row for each confidence."""
    rows = ["| said | verdicts | right | share |", "|---|---|---|---|"]
    for sure in (*SURE, NOT_EXPLAINED):
        of_it = [one for one in verdicts if one.sure == sure]
        right = sum(one.right for one in of_it)
        rows.append(
            f"| {sure} | {len(of_it)} | {right} | {right / len(of_it):.3f} |" if of_it else f"| {sure} | 0 | 0 | |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--hidden", action="store_true", help="read each case without its own entry")
    parser.add_argument("--misses", action="store_true")
    args = parser.parse_args()
    cases = list(labelled(args.folder))
    verdicts = without_own(cases) if args.hidden else with_all(cases)
    sys.stdout.write(table(verdicts) + "\n")
    for (sure, cause, entry), count in sorted(
        collections.Counter(
            (one.sure, one.case.cause, str(one.entry)) for one in verdicts if not one.right and args.misses
        ).items()
    ):
        sys.stdout.write(f"{sure:15} {cause:32} said {entry:32} {count}\n")


if __name__ == "__main__":
    main()
