"""The whole path of a log, read from top to bottom: from a run and a knowledge base to a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from torchtriage.answer import inconclusive_answer
from torchtriage.answer.action import advise, after_earlier_runs, explained, healthy_action, inconclusive_action
from torchtriage.answer.answer_text import facts_used, write_answer
from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.library_message import Printed
from torchtriage.answer.rank_timeline import timeline
from torchtriage.answer.reasons import because_of, reason_sentences
from torchtriage.answer.run_events import host_ranks, last_progress, run_events
from torchtriage.answer.select_answer import select_answer
from torchtriage.answer.verdict import attempts, candidates, cascades, root_cause
from torchtriage.answer.verdict_run import run_facts, suspect_ranks
from torchtriage.answer.windows_commands import for_operating_system
from torchtriage.causality.ending import JOB_STATE, JOB_STATUS, Ending, ending
from torchtriage.causality.fallbacks import completed
from torchtriage.causality.fingerprint import fingerprint, signature
from torchtriage.causality.root_cause import Choice, choose, with_attempts
from torchtriage.causality.tool_reports import with_reports
from torchtriage.domain.entry import KnowledgeBase, Language
from torchtriage.domain.fact import Fact
from torchtriage.domain.host import host_name
from torchtriage.domain.trace import SAMPLE, Trace
from torchtriage.domain.verdict import Answer, EarlierRun, RootCause, Stats, Verdict
from torchtriage.matching.inventory import Inventory, built_in
from torchtriage.matching.matcher import Matcher
from torchtriage.matching.patterns import Patterns
from torchtriage.parsing.registry import EXTRACTORS, Kinds
from torchtriage.reading.redaction.redact import keep_compiled, redact
from torchtriage.reading.redaction.redact_values import without_secrets
from torchtriage.reading.sources import Run
from torchtriage.reading.windows import HEAD
from torchtriage.runs.read_runs import read_runs
from torchtriage.runs.run_reading import Reading

if TYPE_CHECKING:
    from torchtriage.answer.explain_match import Why

VERSION = "1"
_NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})
PROVISIONAL = "provisional"  # the name in `known` that marks a run that has not ended
_OF_JOB = frozenset(
    {JOB_STATUS, JOB_STATE, PROVISIONAL}
)  # the names in `known` that describe how the job ended; they fill no command


@dataclass(frozen=True)
class _Request:
    """What a triage was asked for. `known` contains values that the log lacks; `shown` removes secrets from a text.

    `is_whole`: the log is short enough that no line was skipped. In a long log, lines of progress are skipped, so no
    rank's last line of progress is known.
    """

    source: str
    lang: Language
    known: Mapping[str, str]
    shown: Callable[[str], str]
    is_whole: bool

    @property
    def filling(self) -> dict[str, str]:
        """The known values that may fill commands."""
        return {name: value for name, value in self.known.items() if name not in _OF_JOB}


class Engine:
    """Compiles the patterns once and then triages any number of runs. It is safe to use from several threads."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        cache: Path | None = None,
        extractors: Kinds = EXTRACTORS,
        matcher: Matcher | None = None,
        inventory: Inventory | None = None,
    ) -> None:
        """Compiles the patterns, or takes them from the cache.

        `cache` is a folder in which the compiled patterns are kept between starts. `extractors` find what went wrong,
        in this order. `matcher` contains the patterns of `knowledge`, already compiled. `inventory` maps messages to
        the library code that prints them, for messages without a matching case. By default it is the inventory that the
        package contains.
        """
        self.knowledge = knowledge
        self._inventory = inventory or built_in()
        if cache:
            keep_compiled(cache)
        self._matcher = matcher or Matcher(Patterns(knowledge, cache, extractors))
        self._patterns = self._matcher.patterns

    def triage(
        self,
        run: Run,
        lang: Language = "en",
        known: Mapping[str, str] = _NOTHING_KNOWN,
        redacting: bool = True,
        trace: Trace | None = None,
    ) -> Verdict:
        """Returns what failed in `run` and what to do. Raises UnreadableLog if the log is broken or is not text.

        `known` contains values for commands that the log lacks (`{"job": "4711"}`), the `exit_code` and `state` with
        which the job ended, and `provisional` if it has not ended. If `redacting` is true, known kinds of secrets are
        removed from all text of the log. `trace` records the result of each step.
        """
        began = time.perf_counter()
        steps = trace or _NoTrace()
        read = read_runs(run, self._patterns, self._matcher, trace)  # read → scan → windows → lines → events
        steps.did("events", *_sizes(read.readings))
        *earlier, last = completed(read)  # adds last-resort events to runs whose failure nothing explains
        steps.did("fallbacks", *_sizes((*earlier, last)))
        reading = with_attempts(last.matched())
        steps.did("matches", *_entries(reading))
        choice = with_reports(choose(reading), reading)
        steps.did("cause", *_cause(choice))
        request = _Request(run.name, lang, known, redact if redacting else str, read.stats.bytes <= HEAD)
        found = self._found(request, reading, choice)
        # This comes last, because lines are decoded on the way: text from a base64 file is readable here.
        found = replace(found, earlier_runs=tuple(map(_earlier_run, earlier)))
        verdict = self._explained(without_secrets(found) if redacting else found, lang)
        steps.did("verdict", verdict.outcome, [verdict.signature or ""])
        stats = replace(read.stats, seconds=round(time.perf_counter() - began, 3))
        return replace(verdict, stats=stats)

    def why(self, run: Run, entry: str) -> Why:
        """Returns why the entry with this id matched `run` or not. It must be possible to read `run` twice.

        Raises UnreadableLog, and KeyError if there is no such entry.
        """
        # Imported here, because it is rarely needed and slow to import.
        from torchtriage.answer.explain_match import why

        return why(self._patterns, self._matcher, run, self.knowledge.entries[entry])

    def _found(self, request: _Request, reading: Reading, choice: Choice) -> Verdict:
        """Returns the verdict from the log alone, without the entry's text."""
        known, filling, shown = request.known, request.filling, request.shown
        root, rank_rule = root_cause(choice, reading, filling, shown) if choice.root else (None, None)
        placed, came = host_ranks(reading), last_progress(reading) if request.is_whole else ()
        run_info = replace(run_facts(reading, choice), host_ranks=placed, last_progress=came)
        marks = timeline(choice, reading, root)
        facts: tuple[Fact, ...] = ()
        answer: Answer | None = None
        printed: Printed | None = None
        if root is not None and choice.root is not None:
            root = replace(root, because=because_of(choice, reading, root, rank_rule))
            run_info = replace(run_info, suspect_ranks=suspect_ranks(choice, reading, root))
            failure = Failure(choice.root, root, choice, reading, run_info, marks, shown)
            selected = select_answer(failure, self.knowledge, self._inventory)
            root, facts, answer, printed = selected.root, selected.facts, selected.answer, selected.library_message
        masked = printed.known.masked if printed else str
        followed = cascades(choice, shown)
        ended = ending(reading, known, choice.survived) if root is None else None
        if ended is not None and not ended.good:
            answer = Answer(None, "", values=inconclusive_answer.values_of(ended, run_info, filling, shown))
        return Verdict(
            source=request.source,
            outcome=_outcome(root.entry if root else None, ended),
            signature=signature(choice.root) if choice.root else None,
            fingerprint=fingerprint(choice.root, masked) if choice.root else None,
            root_cause=root,
            candidates=candidates(choice, followed, request.lang),
            cascades=followed,
            action=inconclusive_action(request.lang) if answer and ended else healthy_action(request.lang),
            run=run_info,
            attempts=attempts(choice),
            earlier_runs=(),
            warnings=_warnings(reading),
            stats=Stats(),
            engine=VERSION,
            knowledge=self.knowledge.digest,
            timeline=marks,
            events=run_events(choice, reading, shown, ended_well=ended is not None and ended.good),
            facts=facts,
            answer=answer,
            provisional=PROVISIONAL in known,
        )

    def _explained(self, verdict: Verdict, lang: Language) -> Verdict:
        """Returns the verdict with the knowledge base's text about its root cause."""
        root = verdict.root_cause
        if root is None:
            translated = verdict.answer and inconclusive_answer.in_language(verdict.answer, lang)
            return replace(verdict, answer=translated)
        root = replace(root, reasons=reason_sentences(root.because, lang))
        entry = self.knowledge.entries[root.entry] if root.entry else None
        if entry is not None:
            root = explained(root, entry, verdict.run.versions_inferred | verdict.run.versions, lang)
        answer, form = verdict.answer, None
        if answer is not None:
            form = self.knowledge.form(answer.form)
            answer = write_answer(answer, root, entry, verdict.run.versions_inferred | verdict.run.versions, lang, form)
            answer = for_operating_system(answer, self.knowledge.vocabulary)
            answer = replace(answer, facts=facts_used(answer, entry, verdict.facts, form))
        action = advise(entry, root.words, _hosts_at_fault(root, answer), lang, answer, form)
        action = after_earlier_runs(verdict.earlier_runs, root.entry, action, lang)
        return replace(verdict, root_cause=root, action=action, answer=answer)


def _hosts_at_fault(root: RootCause, answer: Answer | None) -> list[str]:
    """Returns the host that the failure's own words name (`{node}` of the case), or else the host on which it happened.
    A host that reports another host's failure must not be excluded, nor a host that another line names."""
    named = answer.values.get("node", "") if answer is not None else ""
    own = host_name(named) is not None and named in root.words
    return [named] if own else [root.host] if root.host else []


def _earlier_run(reading: Reading) -> EarlierRun:
    choice = choose(with_attempts(reading.matched()))
    if choice.root is None:
        outcome = _outcome(None, ending(reading, _NOTHING_KNOWN, choice.survived))
        return EarlierRun(outcome, None, reading.head[0].number if reading.head else None)
    entry = choice.root.entry
    return EarlierRun(_outcome(entry, None), entry, choice.root.event.line.number)


def _outcome(entry: str | None, ended: Ending | None) -> str:
    """Returns the outcome of a run with this entry, or with this ending if nothing failed."""
    if ended is not None:
        return "healthy" if ended.good else "inconclusive"
    return "explained" if entry else "unexplained"


class _NoTrace:
    """A trace that records nothing, for callers that want none."""

    def did(self, name: str, gave: str, samples: Iterable[str] = ()) -> None:
        """Does nothing."""


def _sizes(readings: Sequence[Reading]) -> tuple[str, Iterator[str]]:
    """Returns the number of runs and findings, and the texts of the first findings."""
    findings = [finding for reading in readings for finding in reading.findings]
    samples = (f"{each.event.source}: {each.event.text[:SAMPLE]}" for each in findings)
    runs = "1 run" if len(readings) == 1 else f"{len(readings)} runs"
    return f"{len(findings)} findings in {runs}", samples


def _entries(reading: Reading) -> tuple[str, Iterator[str]]:
    matched = [finding for finding in reading.findings if finding.matches]
    samples = (f"{each.entry} by line {each.event.line.number}" for each in matched)
    return f"{len(matched)} of {len(reading.findings)} findings with an entry", samples


def _cause(choice: Choice) -> tuple[str, Iterator[str]]:
    counts = f"{len(choice.live)} failures, {len(choice.survived)} that the run survived"
    return counts, (f"rule {rule.name}: {rule.reason}" for rule in choice.rules)


def _warnings(reading: Reading) -> tuple[str, ...]:
    dropped = [f"{reading.dropped} more distinct failures were not analyzed"] if reading.dropped else []
    deep = ["of very deep tracebacks only the innermost frames were read"] if reading.extractors.tracebacks.deep else []
    return (*reading.warnings, *dropped, *deep)
