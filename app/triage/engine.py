"""The whole path of a log on one screen: a run and a knowledge base in, a verdict out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from app.domain.entry import KnowledgeBase, Language
from app.domain.verdict import EarlierRun, Stats, Verdict
from app.reading.sources import Run
from app.triage.action import advise, nothing_failed
from app.triage.fingerprint import fingerprint, signature
from app.triage.match import Matcher
from app.triage.patterns import Patterns
from app.triage.reading_run import RunReading
from app.triage.reasons import because_of, tell
from app.triage.root_cause import Choice, choose
from app.triage.run_facts import run_facts
from app.triage.timeline import timeline
from app.triage.verdict_of import attempts, candidates, cascades, root_cause
from app.triage.walk import Walk

if TYPE_CHECKING:
    from app.triage.why import Why

VERSION = "1"
_NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})


class Engine:
    """Patterns compiled once, then any number of runs; safe to use from several threads."""

    def __init__(self, knowledge: KnowledgeBase, cache: Path | None = None) -> None:
        """`cache` is a folder in which the compiled patterns are kept from one start to the next."""
        self.knowledge = knowledge
        self._patterns = Patterns(knowledge, cache)
        self._matcher = Matcher(self._patterns)

    def triage(self, run: Run, lang: Language = "en", known: Mapping[str, str] = _NOTHING_KNOWN) -> Verdict:
        """-> what failed in `run` and what to do. `known`: what commands are filled with where the log does not tell it
        (`{"job": "4711"}`). Raises UnreadableLog where the log is empty, broken or no text."""
        began = time.perf_counter()
        walk = Walk(self._patterns, self._matcher, run)
        walk.read()
        *earlier, last = walk.readings
        choice = choose(last)
        verdict = self._verdict(run, last, choice, lang, known)
        before = tuple(self._earlier(reading) for reading in earlier)
        stats = replace(walk.stats, seconds=round(time.perf_counter() - began, 3))
        return replace(verdict, earlier_runs=before, stats=stats)

    def why(self, run: Run, entry: str) -> Why:
        """-> why the entry with this id did or did not match `run`, which must be one that can be read twice.

        Raises UnreadableLog, and KeyError where there is no such entry.
        """
        from app.triage.why import why  # seldom asked for, and its classes take a while to make

        return why(self._patterns, self._matcher, run, self.knowledge.entries[entry])

    def _verdict(
        self, run: Run, reading: RunReading, choice: Choice, lang: Language, known: Mapping[str, str]
    ) -> Verdict:
        root = root_cause(choice, reading, lang, known) if choice.root else None
        if root is not None:
            because = because_of(choice, reading, root)
            root = replace(root, because=because, reasons=tell(because, lang))
        entry = choice.root.match.entry if choice.root and choice.root.match else None
        hosts = [root.host] if root and root.host else []
        return Verdict(
            source=run.name,
            outcome="healthy" if root is None else "explained" if root.entry else "unexplained",
            signature=signature(choice.root) if choice.root else None,
            fingerprint=fingerprint(choice.root) if choice.root else None,
            root_cause=root,
            candidates=candidates(choice, lang),
            cascades=cascades(choice),
            action=advise(entry, root.words, hosts, lang) if root else nothing_failed(lang),
            run=run_facts(reading, choice),
            attempts=attempts(choice),
            earlier_runs=(),
            warnings=_warnings(reading),
            stats=Stats(),
            engine=VERSION,
            knowledge=self.knowledge.digest,
            timeline=timeline(choice, reading, root),
        )

    def _earlier(self, reading: RunReading) -> EarlierRun:
        choice = choose(reading)
        if choice.root is None:
            return EarlierRun("healthy", None, reading.head[0].number if reading.head else None)
        entry = choice.root.entry
        return EarlierRun("explained" if entry else "unexplained", entry, choice.root.event.line.number)


def _warnings(reading: RunReading) -> tuple[str, ...]:
    dropped = reading.findings.dropped
    told = [f"{dropped} further different failures were not looked at"] if dropped else []
    deep = ["of very deep tracebacks only the innermost frames were read"] if reading.extractors.tracebacks.deep else []
    return (*reading.warnings, *told, *deep)
