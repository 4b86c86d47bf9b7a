"""The whole path of a log on one screen: a run and a knowledge base in, a verdict out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from torchtriage.answer.action import advise, explained, nothing_failed
from torchtriage.answer.reasons import because_of, tell
from torchtriage.answer.run_facts import run_facts
from torchtriage.answer.timeline import timeline
from torchtriage.answer.verdict import attempts, candidates, cascades, root_cause
from torchtriage.causality.fingerprint import fingerprint, signature
from torchtriage.causality.root_cause import choose
from torchtriage.causality.run_reading import RunReading
from torchtriage.causality.walk import Walk
from torchtriage.domain.entry import KnowledgeBase, Language
from torchtriage.domain.verdict import EarlierRun, Stats, Verdict
from torchtriage.matching.matcher import Matcher
from torchtriage.matching.patterns import Patterns
from torchtriage.parsing.registry import EXTRACTORS, Kinds
from torchtriage.reading.redaction.redact import keep_compiled, redact
from torchtriage.reading.redaction.redact_values import without_secrets
from torchtriage.reading.sources import Run

if TYPE_CHECKING:
    from torchtriage.answer.explain_match import Why

VERSION = "1"
_NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})


class Engine:
    """Patterns compiled once, then any number of runs; safe to use from several threads."""

    def __init__(self, knowledge: KnowledgeBase, cache: Path | None = None, extractors: Kinds = EXTRACTORS) -> None:
        """`cache` is a folder in which the compiled patterns are kept from one start to the next; `extractors` read
        what went wrong, in their order."""
        self.knowledge = knowledge
        if cache:
            keep_compiled(cache)
        self._patterns = Patterns(knowledge, cache, extractors)
        self._matcher = Matcher(self._patterns)

    def triage(
        self,
        run: Run,
        lang: Language = "en",
        known: Mapping[str, str] = _NOTHING_KNOWN,
        redacting: bool = True,
    ) -> Verdict:
        """-> what failed in `run` and what to do. `known`: what commands are filled with where the log does not tell it
        (`{"job": "4711"}`). `redacting`: known kinds of secrets are taken out of all that the log says. Raises
        UnreadableLog where the log is empty, broken or no text."""
        began = time.perf_counter()
        walk = Walk(self._patterns, self._matcher, run)
        walk.read()
        *earlier, last = walk.readings
        found = self._found(run, last, lang, known, redact if redacting else str)
        # Last, as lines are decoded on the way: what stands in a file in base64 is plain here.
        verdict = self._told(without_secrets(found) if redacting else found, lang)
        before = tuple(self._earlier(reading) for reading in earlier)
        stats = replace(walk.stats, seconds=round(time.perf_counter() - began, 3))
        return replace(verdict, earlier_runs=before, stats=stats)

    def why(self, run: Run, entry: str) -> Why:
        """-> why the entry with this id did or did not match `run`, which must be one that can be read twice.

        Raises UnreadableLog, and KeyError where there is no such entry.
        """
        from torchtriage.answer.explain_match import why  # seldom asked for, and its classes take a while to make

        return why(self._patterns, self._matcher, run, self.knowledge.entries[entry])

    def _found(
        self, run: Run, reading: RunReading, lang: Language, known: Mapping[str, str], shown: Callable[[str], str]
    ) -> Verdict:
        """-> the verdict as the log tells it, without what the knowledge base says of it."""
        choice = choose(reading)
        root = root_cause(choice, reading, known, shown) if choice.root else None
        if root is not None:
            root = replace(root, because=because_of(choice, reading, root))
        return Verdict(
            source=run.name,
            outcome="healthy" if root is None else "explained" if root.entry else "unexplained",
            signature=signature(choice.root) if choice.root else None,
            fingerprint=fingerprint(choice.root) if choice.root else None,
            root_cause=root,
            candidates=candidates(choice, lang),
            cascades=cascades(choice, shown),
            action=nothing_failed(lang),
            run=run_facts(reading, choice),
            attempts=attempts(choice),
            earlier_runs=(),
            warnings=_warnings(reading),
            stats=Stats(),
            engine=VERSION,
            knowledge=self.knowledge.digest,
            timeline=timeline(choice, reading, root),
        )

    def _told(self, verdict: Verdict, lang: Language) -> Verdict:
        """-> the verdict with what the knowledge base says of its root cause."""
        root = verdict.root_cause
        if root is None:
            return verdict
        root = replace(root, reasons=tell(root.because, lang))
        entry = self.knowledge.entries[root.entry] if root.entry else None
        if entry is not None:
            root = explained(root, entry, verdict.run.versions_inferred | verdict.run.versions, lang)
        action = advise(entry, root.words, [root.host] if root.host else [], lang)
        return replace(verdict, root_cause=root, action=action)

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
