"""Tests the engine on every message that libraries can print: `python -m bench.inventory [LIBRARY or MODULE…]`.

For each exception of the inventory, creates a log: training steps, then a traceback from `train.py`, line 71, through
the function that raises it. For each warning of NCCL, the log has its line and the exception that torch makes of it.
The slots have values. The rules: the outcome is never healthy or inconclusive, no entry about another library matches,
and the answer names the user's line and the origin of the message. `--write` writes docs/inventory.md; if libraries or
modules are named, only their rows are updated. `--breaches N` prints the first N logs of each broken rule, `--without
N` the first N messages that no case answers.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from torchtriage.answer.case_selection import explains_message, explains_place, is_general
from torchtriage.domain.message_template import LibraryMessage, parts
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.cache import cache_folder, load
from torchtriage.matching.area_detection import AreaMarks
from torchtriage.matching.inventory import NATIVE, KnownMessage, built_in
from torchtriage.reading.sources import from_bytes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "inventory.md"
_LOGGED = frozenset({"error", "critical"})
_NUMBER = re.compile(r"(?i)len\(|rank|size|dim|num|count|step|idx|index|world|length|total|version|_id\b|shape\[")
# The values of slots with these names, as Python prints them; the first match is used. Other slots get a word.
_PRINTED = (
    (re.compile(r"^type\([^()]*\)$"), "<class 'int'>"),
    (re.compile(r"\.shape$|(?<!mesh)\.size\(\)$"), "torch.Size([7])"),
    (re.compile(r"\bdtype$"), "torch.float32"),
    (re.compile(r"dtypes$"), "{torch.float32, torch.bfloat16}"),
    (re.compile(r"\.device$"), "cuda:0"),
    (re.compile(r"^(device_)?mesh$"), "DeviceMesh((dp=2, tp=4), 'cuda')"),
    (re.compile(r"(^|_)(names|types|keys)$|\.keys\(\)\)?$"), "['value']"),
    (_NUMBER, "7"),
)
_SLOT, _WORD = re.compile(r"\{\w+\}"), re.compile(r"[A-Za-z]{2}")
_SITE = "/env/lib/python3.11/site-packages"
_BY_TORCH = (
    f'  File "{_SITE}/torch/distributed/distributed_c10d.py", line 3000, in all_reduce\n'
    "    work = group.allreduce([tensor], opts)\n"
    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, "
)
_INTERNAL = (
    "internal error - please report this issue to the NCCL developers, NCCL version 2.27.5\n"
    "ncclInternalError: Internal check failed.\nLast error:\n"
)
_CUDA_FAILED = (
    "unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5\n"
    "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
)
# For these, the page uses every message; for the others, every Nth.
_IN_FULL = ("torch.distributed", "torch.utils.data", "torch.utils.checkpoint", "torch.autograd", "nccl")
_HOW_TO_READ = """\
`python -m scripts.inventory PACKAGE==VERSION` reads the messages of a released package into `knowledge_base/_inventory`.
For {which}, this test writes a log and triages it.

The columns say what answered: a case that knows the message; a case about the part of the library that printed it; a
form of messages; only the family; or only the inventory, which names the function that prints the message. A rule is
broken if the log is called healthy or inconclusive, if an entry of another library matches, or if the answer does not
name the user's line and the message's origin. NCCL prints warnings and no Python traceback: its broken rules are cases
that say what the warning means, but not which of the user's lines called NCCL, or where in NCCL it comes from."""
_USERS_LINE = "train.py:71"
_OTHERS, _SILENT, _NAMELESS = "another library's family", "called healthy or inconclusive", "does not name the place"
# Parts of a library that the page counts separately. Each comes after the parts inside it.
_PARTS = (
    "torch.distributed.fsdp", "torch.distributed.tensor", "torch.distributed.elastic", "torch.distributed.checkpoint",
    "torch.distributed.pipelining", "torch.distributed", "torch.utils.data", "torch.utils.checkpoint", "torch.autograd",
    "torch.optim", "torch.nn", "torch.cuda", "torch.amp", "torch._dynamo", "torch._inductor",
)  # fmt: skip


class Tried(NamedTuple):
    """A message and the result for its log: entry, case, message form and the broken rules."""

    part: str
    message: LibraryMessage
    entry: str | None
    case: str | None
    form: str | None
    confidence: str
    broken: tuple[str, ...]
    says: str

    @property
    def outcome(self) -> str:
        """How the message was answered. `case`: by a case that knows the message. `place`: by a case about the part of
        the library that printed it, which names the function and quotes the message. `form`: by a message form.
        `family`: none of these, or a case that repeats any message of its family or passes on the advice in it."""
        if self.form is not None:
            return "form"
        cases = _engine().knowledge.entries[self.entry].cases if self.entry else ()
        speaks = next((case for case in cases if case.id == self.case), None)
        if speaks is None:
            return "nothing" if self.entry is None else "family"
        if explains_message(speaks) and _WORD.search(_SLOT.sub("", speaks.says.en)):
            return "case"
        names = self.message.function.rpartition(".")[2] in self.says
        return "place" if is_general(speaks) and explains_place(speaks) and names else "family"


def log_of(known: KnownMessage, library: str) -> str:
    """Returns a log that ends with this message."""
    message, text = known.message, filled(known.message)
    steps = "".join(f"step {step} loss {3 - step / 100:.4f} lr 3.0e-04\n" for step in range(10, 60, 10))
    call = 'Traceback (most recent call last):\n  File "/job/train.py", line 71, in train\n    out = run(batch)\n'
    if message.kind == "NCCL WARN":
        warned = f"gpu-3:812:1200 [2] {message.module}:340 {message.kind} {text}\n"
        result = _CUDA_FAILED if text.startswith("Cuda failure") else _INTERNAL
        return f"{steps}\n{warned}{call}{_BY_TORCH}{result}{text}\n"
    if library.endswith(NATIVE):
        return f"{steps}{call}RuntimeError: {text}\n"
    path = message.module.replace(".", "/") + ("/__init__" if message.module in _packages(library) else "")
    function = message.function.rpartition(".")[2] or "<module>"
    frame = f'  File "{_SITE}/{path}.py", line 100, in {function}\n    raise {message.kind}(\n'
    return f"{steps}{call}{frame}{message.kind}: {text}\n"


@lru_cache
def _packages(name: str) -> frozenset[str]:
    """Returns the modules of a library that contain others, so that their file is `__init__.py`."""
    library = built_in().library(name)
    modules = {known.message.module for known in library or ()}
    return frozenset(module.rpartition(".")[0] for module in modules) & modules


def filled(message: LibraryMessage) -> str:
    """Returns the message with a fixed value in each slot."""
    return "".join(_printed(part.text) if part.is_slot else part.text for part in parts(message.template)).strip()


def _printed(slot: str) -> str:
    return next((value for name, value in _PRINTED if name.search(slot)), "value")


def tried(library: str, known: KnownMessage) -> Tried:
    """Returns the result of the engine for the log of a message."""
    verdict = _engine().triage(from_bytes(log_of(known, library).encode()))
    root, answer = verdict.root_cause, verdict.answer
    return Tried(
        _part(library, known.message.module),
        known.message,
        root.entry if root else None,
        answer.case if answer else None,
        answer.form if answer else None,
        root.confidence if root else "",
        tuple(_broken(verdict, known, library)),
        answer.says if answer else "",
    )


def _broken(verdict: Verdict, known: KnownMessage, library: str) -> Iterator[str]:
    root, answer = verdict.root_cause, verdict.answer
    if root is None or answer is None:
        yield _SILENT
        return
    if root.entry is not None and not _is_about(root.entry, known):
        yield _OTHERS
    told = " ".join((answer.says, *(step.do for step in answer.steps), *(line.text for line in root.evidence)))
    if _USERS_LINE not in told or not _names(told, known):
        yield _NAMELESS


def _is_about(entry: str, known: KnownMessage) -> bool:
    """Returns whether a message, or the function that prints it, names the topic of the entry's area."""
    message = known.message
    return _area_marks().shown(entry.partition(".")[0], (message.module, message.function, message.template))


def _names(told: str, known: KnownMessage) -> bool:
    """Returns whether a text names the function or contains the message."""
    message = known.message
    constants = max((part.text.strip() for part in parts(message.template) if not part.is_slot), key=len)
    names = (known.public.rpartition(".")[0], message.function, message.module.replace(".", "/"), constants[:40])
    return any(name and name in told for name in names)


def _part(library: str, module: str) -> str:
    return next((part for part in _PARTS if f"{module}.".startswith(f"{part}.")), library)


@lru_cache(maxsize=1)
def _engine() -> Engine:
    return Engine(load([BUILT_IN], cache_folder()), cache_folder())


@lru_cache(maxsize=1)
def _area_marks() -> AreaMarks:
    return AreaMarks(_engine().knowledge.vocabulary)


def chosen(wanted: list[str], every: int) -> list[tuple[str, KnownMessage]]:
    """Returns the messages of the newest version that can end a run, of these libraries and modules: every `every`th
    one, and all of the parts that are tested completely."""
    found: list[tuple[str, KnownMessage]] = []
    for name in built_in().names():
        library = built_in().library(name)
        for known in library or ():
            message = known.message
            here = not wanted or name in wanted or any(f"{message.module}.".startswith(f"{each}.") for each in wanted)
            ends = message.kind not in _LOGGED and not message.kind.endswith("Warning")
            if library is not None and here and ends and message.until == library.versions[-1]:
                found.append((name, known))
    return [each for place, each in enumerate(found) if place % every == 0 or _in_full(*each)]


def _in_full(library: str, known: KnownMessage) -> bool:
    return library in _IN_FULL or any(f"{known.message.module}.".startswith(f"{part}.") for part in _IN_FULL)


def _tried(job: tuple[str, KnownMessage]) -> Tried:
    return tried(*job)


def table(results: Iterable[Tried]) -> Iterator[str]:
    """Yields the rows of the page: for each part, the number of messages and how they are answered."""
    counts: dict[str, Counter[str]] = {}
    for each in results:
        counts.setdefault(each.part, Counter()).update((each.outcome, "all", *each.broken))
    yield "| part | messages | by a case | by a case of its part | by a form | by a family | by the inventory | rules broken |"
    yield "|---|---|---|---|---|---|---|---|"
    for part, count in sorted(counts.items(), key=lambda each: each[0]):
        broken = sum(count[rule] for rule in (_OTHERS, _SILENT, _NAMELESS))
        told = (count[outcome] for outcome in ("all", "case", "place", "form", "family", "nothing"))
        yield f"| {part} | {' | '.join(map(str, told))} | {broken} |"


def _which(every: int) -> str:
    """Returns which messages the page counts, in words."""
    modules = f"{', '.join(_IN_FULL[:-1])} and NCCL"
    share = "each exception" if every == 1 else f"one of {every} exceptions"
    return f"{share} of the newest version read, and for all messages of {modules}"


def page(rows: Iterable[str], every: int) -> str:
    """Returns docs/inventory.md with these rows."""
    versions = []
    for name in built_in().names():
        library = built_in().library(name)
        versions += [f"{name} {', '.join(library.versions)}"] if library else []
    lines = [
        "# The messages that libraries can print",
        "<!-- Made by python -m bench.inventory --write. -->",
        "",
        _HOW_TO_READ.format(which=_which(every)),
        "",
        *rows,
        "",
        f"Versions read: {'; '.join(versions)}.",
    ]
    return "\n".join(lines) + "\n"


def beside(rows: Iterable[str], written: str) -> Iterator[str]:
    """Yields the given rows, and the rows of the written page for all other parts."""
    head, line, *found = rows
    had = [row for row in written.splitlines() if row.startswith("| ") and row.count("|") == head.count("|")]
    by_part = {row.split()[1]: row for row in (*had, *found) if row != head}
    yield from (head, line, *(by_part[part] for part in sorted(by_part)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wanted", nargs="*", metavar="LIBRARY or MODULE")
    parser.add_argument("--every", type=int, default=1, help="try each Nth message")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--breaches", type=int, default=0)
    parser.add_argument("--without", type=int, default=0)
    given = parser.parse_args()
    _engine()
    with ProcessPoolExecutor(2) as pool:
        results = list(pool.map(_tried, chosen(given.wanted, given.every), chunksize=64))
    if given.write:
        had = PAGE.read_text(encoding="utf-8") if given.wanted else ""
        PAGE.write_text(page(beside(table(results), had), given.every), encoding="utf-8")
    print("\n".join(table(results)))
    families = Counter(each.entry for each in results if not each.case)
    print("without a case:", ", ".join(f"{name} {count}" for name, count in families.most_common(25)))
    cases = Counter(f"{each.entry}/{each.case} ({each.outcome})" for each in results if each.case)
    print("cases:", ", ".join(f"{name} {count}" for name, count in cases.most_common(25)))
    for rule in (_SILENT, _OTHERS, _NAMELESS):
        broken = [each for each in results if rule in each.broken]
        print(f"{rule}: {len(broken)}", Counter(each.entry for each in broken).most_common(12))
        _print(islice(broken, given.breaches))
    _print(islice((each for each in results if not each.case), given.without))


def _print(results: Iterable[Tried]) -> None:
    for each in results:
        message = each.message
        print(f"  {message.module} {message.function} {message.kind}: {message.template[:150]!r}")
        print(f"    {each.entry} {each.case} {each.confidence}: {each.says[:300]}")


if __name__ == "__main__":
    sys.exit(main())
