"""The whole path of a log on one screen: a run and a knowledge base in, a verdict out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from torchtriage.answer.action import advise, explained, nothing_failed
from torchtriage.answer.reasons import because_of, tell
from torchtriage.answer.run_facts import run_facts
from torchtriage.answer.timeline import timeline
from torchtriage.answer.verdict import attempts, candidates, cascades, root_cause
from torchtriage.causality.fallbacks import completed
from torchtriage.causality.fingerprint import fingerprint, signature
from torchtriage.causality.read_runs import read_runs
from torchtriage.causality.reading import Reading
from torchtriage.causality.root_cause import Choice, choose, with_attempts
from torchtriage.domain.entry import KnowledgeBase, Language
from torchtriage.domain.trace import SAMPLE, Trace
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
        trace: Trace | None = None,
    ) -> Verdict:
        """-> what failed in `run` and what to do. `known`: what commands are filled with where the log does not tell it
        (`{"job": "4711"}`). `redacting`: known kinds of secrets are taken out of all that the log says. `trace`
        collects what each step gave. Raises UnreadableLog where the log is empty, broken or no text."""
        began = time.perf_counter()
        steps = trace or _NoTrace()
        read = read_runs(run, self._patterns, self._matcher, trace)  # read → scan → windows → lines → events
        steps.did("events", *_sizes(read.readings))
        *earlier, last = completed(read)  # what is tried where nothing says why it failed
        steps.did("fallbacks", *_sizes((*earlier, last)))
        reading = with_attempts(last.matched())
        steps.did("matches", *_entries(reading))
        choice = choose(reading)
        steps.did("cause", *_cause(choice))
        found = self._found(run, reading, choice, lang, known, redact if redacting else str)
        # Last, as lines are decoded on the way: what stands in a file in base64 is plain here.
        verdict = self._explained(without_secrets(found) if redacting else found, lang)
        before = tuple(map(_earlier_run, earlier))
        steps.did("verdict", verdict.outcome, [verdict.signature or ""])
        stats = replace(read.stats, seconds=round(time.perf_counter() - began, 3))
        return replace(verdict, earlier_runs=before, stats=stats)

    def why(self, run: Run, entry: str) -> Why:
        """-> why the entry with this id did or did not match `run`, which must be one that can be read twice.

        Raises UnreadableLog, and KeyError where there is no such entry.
        """
        from torchtriage.answer.explain_match import why  # seldom asked for, and its classes take a while to make

        return why(self._patterns, self._matcher, run, self.knowledge.entries[entry])

    def _found(
        self,
        run: Run,
        reading: Reading,
        choice: Choice,
        lang: Language,
        known: Mapping[str, str],
        shown: Callable[[str], str],
    ) -> Verdict:
        """-> the verdict as the log tells it, without what the knowledge base says of it."""
        root, rank_rule = root_cause(choice, reading, known, shown) if choice.root else (None, None)
        if root is not None:
            root = replace(root, because=because_of(choice, reading, root, rank_rule))
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

    def _explained(self, verdict: Verdict, lang: Language) -> Verdict:
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


def _earlier_run(reading: Reading) -> EarlierRun:
    choice = choose(with_attempts(reading.matched()))
    if choice.root is None:
        return EarlierRun("healthy", None, reading.head[0].number if reading.head else None)
    entry = choice.root.entry
    return EarlierRun("explained" if entry else "unexplained", entry, choice.root.event.line.number)


class _NoTrace:
    """Where nobody wants a trace."""

    def did(self, name: str, gave: str, samples: Iterable[str] = ()) -> None:
        """Does nothing."""


def _sizes(readings: Sequence[Reading]) -> tuple[str, Iterator[str]]:
    """-> how many runs and findings there are, and what the first findings say."""
    findings = [finding for reading in readings for finding in reading.findings]
    samples = (f"{each.event.source}: {each.event.text[:SAMPLE]}" for each in findings)
    return f"{len(findings)} findings in {len(readings)} runs", samples


def _entries(reading: Reading) -> tuple[str, Iterator[str]]:
    matched = [finding for finding in reading.findings if finding.matches]
    samples = (f"{each.entry} by line {each.event.line.number}" for each in matched)
    return f"{len(matched)} of {len(reading.findings)} findings with an entry", samples


def _cause(choice: Choice) -> tuple[str, Iterator[str]]:
    counts = f"{len(choice.live)} failures, {len(choice.survived)} that the run survived"
    return counts, (f"rule {rule.name}: {rule.reason}" for rule in choice.rules)


def _warnings(reading: Reading) -> tuple[str, ...]:
    dropped = [f"{reading.dropped} further different failures were not looked at"] if reading.dropped else []
    deep = ["of very deep tracebacks only the innermost frames were read"] if reading.extractors.tracebacks.deep else []
    return (*reading.warnings, *dropped, *deep)
