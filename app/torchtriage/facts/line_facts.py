"""Extracts facts from the text of single lines, given the regexes that match it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torchtriage.domain.line import Line
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts import hosts, launchers, progress, versions
from torchtriage.facts.launchers import LauncherRegexes
from torchtriage.facts.registry import line_facts
from torchtriage.facts.scan_regex import MatchedRegexes, ScanRegex, regexes_by_name, scan_regex_of
from torchtriage.facts.versions import Bounds, VersionRegexes

ENOUGH_OF_FIELD = 10  # lines; a log with this many lines about training is a training log, whatever else is in it
MAX_LENGTH = 2000  # characters of a text that are read
_START = 80  # characters
# Several regexes instead of one: if RE2's automaton outgrows its memory, each search prints a warning and is many times
# slower.
_OTHER_PROGRAMS = ("languages", "builds", "servers", "machines", "services", "simulations")


class TextFacts(NamedTuple):
    """The facts of one line's text. They do not depend on its place in the log."""

    launcher: str | None = None
    world_size: int | None = None
    exit_code: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    bounds: Bounds = (None, None)
    phase: str | None = None
    good_end: bool = False
    shutdown: bool = False
    wait_over: bool = False
    refusal: bool = False
    server_up: bool = False
    logging_error: bool = False
    idle: bool = False  # says that a loop had nothing to train on
    other_program: bool = False
    on_gpus: bool = False  # a line of another program that uses GPUs
    is_training_line: bool = False
    device_only: bool = False  # mentions training only by words for devices
    batch_system_only: bool = False  # mentions only the batch system
    training_word_kinds: int = 0  # kinds of words about training, as a bit mask
    hosts: tuple[str, ...] = ()
    placed: tuple[tuple[int, str], ...] = ()  # (rank, host)
    executed: tuple[str, ...] = ()  # hosts on which a batch system ran the job


class LineForm(NamedTuple):
    """The common properties of lines that match the same regexes. `facts`: the facts that follow from the regexes alone; if
    `is_read` is false, there are no others. `says_more`: the facts are more than that this is a training log. `counts`:
    the lines may show progress; `surely`: they do. `passes`: they show at most that the run continues."""

    matched: MatchedRegexes
    facts: TextFacts
    is_read: bool
    says_more: bool
    counts: bool
    surely: bool
    passes: bool


def start(line: Line) -> str:
    """Returns the start of a line with its label if the two forms show the torch version, else an empty string."""
    may_start = line.text[:1] in ("T", "[") or "Error: " in line.text or line.raw[:2] == "[2"
    if not may_start or line.raw.lstrip()[:1] != "[":
        return ""
    label, _, behind = line.raw[:_START].partition("]")
    numbered = label[:5] == "[rank" and label[5:].isdecimal()  # the text after it is the same on all ranks
    return f"[rank0]{behind}" if numbered else line.raw[:_START]


class LineRegexes:
    """The regexes that are searched in lines, with their indexes, and the facts that follow from them. Created once per
    vocabulary. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        def listed(name: str) -> ScanRegex:
            return scan_regex_of(vocabulary.patterns(name))

        self.line_facts = line_facts(vocabulary)
        self.launchers, self.versions = LauncherRegexes(vocabulary), VersionRegexes(vocabulary)
        self.phases = regexes_by_name(vocabulary.patterns("phases"))
        self.good_end, self.shutdown = listed("run-ended-well"), listed("run-wound-up")
        self.wait_over, self.refusal, self.server_up = (
            listed("wait-ended"),
            listed("request-refused"),
            listed("server-up"),
        )
        self.logging_errors, self.idle = listed("logging-errors"), listed("trained-nothing")
        self.waits_for_ranks, self.waits_for_nodes = listed("waits-for-ranks"), listed("waits-for-nodes")
        self.entry_points = frozenset(vocabulary.words("traceback-entry-points"))
        self.training, self.devices = listed("training-words"), listed("device-words")
        self.batch_system_only = listed("batch-system-words")
        self.hints = tuple(scan_regex_of([item]) for item in vocabulary.patterns("training-loop-words"))
        self.gpu_programs = listed("other-programs-on-gpus")
        self.other_programs = (self.gpu_programs, *(listed(f"other-programs-{name}") for name in _OTHER_PROGRAMS))
        self.people_asking, self.other_fields = listed("people-asking"), listed("other-fields")
        self.accelerator_jobs = listed("accelerator-jobs")
        of_course = (
            self.good_end, self.shutdown, self.wait_over, self.refusal, self.server_up, self.logging_errors, self.idle, *self.phases.values(),
        )  # fmt: skip
        training_regexes = (self.batch_system_only, self.training, self.devices, *self.hints)
        self.all: tuple[ScanRegex, ...] = (
            *self.launchers.by_name.values(), *launchers.REGEXES, *self.versions.all, *progress.REGEXES, *of_course, *hosts.REGEXES,
            *self.other_programs, *training_regexes,
        )  # fmt: skip
        # Most lines of most logs match one of these. After enough matches, they need not be searched any more.
        self.training_regexes = frozenset(map(self.all.index, training_regexes))
        self.path = self.all.index(versions.PATH)
        # After this many lines, further matches of these regexes add nothing.
        self.enough = {
            self.all.index(self.training): ENOUGH_OF_FIELD,
            self.all.index(self.devices): ENOUGH_OF_FIELD,
            self.path: 1,
        }
        self.sure = frozenset(number for number, regex in enumerate(self.all) if regex.is_exact)
        # For these regexes, the text around them must be read too.
        self._read = frozenset(
            (*launchers.REGEXES, *self.versions.printed_regexes, *self.other_programs, *hosts.REGEXES)
        )
        self._certain = 0b11 << len(self.hints)  # as much as two kinds of hints
        # Most lines of a log match the same regexes, and ranks print the same lines.
        self.form_of = lru_cache(maxsize=1024)(self._form_of)
        self.facts_of = lru_cache(maxsize=4096)(self._facts_of)

    def matching_numbers(self, text: str, pointed: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the indexes of the regexes that match a text, out of those that a scan for their pointers proposed."""
        whole = len(text) <= MAX_LENGTH
        if whole and self.sure.issuperset(pointed):
            return pointed
        return tuple(at for at in pointed if (whole and at in self.sure) or self.all[at].matches(text[:MAX_LENGTH]))

    def _form_of(self, numbers: tuple[int, ...]) -> LineForm:
        """Returns the common properties of lines that match these regexes."""
        matched = frozenset(self.all[number] for number in numbers)
        by_words = self.training in matched or not matched.isdisjoint(self.hints)
        is_training_line = by_words or self.devices in matched
        certain = not matched.isdisjoint((self.training, self.devices, self.batch_system_only))
        facts = TextFacts(
            launcher=self.launchers.outermost(matched),
            bounds=versions.bounds(matched),
            phase=next((name for name, regex in self.phases.items() if regex in matched), None),
            good_end=self.good_end in matched,
            shutdown=self.shutdown in matched,
            wait_over=self.wait_over in matched,
            refusal=self.refusal in matched,
            server_up=self.server_up in matched,
            logging_error=self.logging_errors in matched,
            idle=self.idle in matched,
            is_training_line=is_training_line,
            device_only=is_training_line and not by_words,
            batch_system_only=self.batch_system_only in matched and not is_training_line,
            training_word_kinds=sum(1 << kind for kind, hint in enumerate(self.hints) if hint in matched)
            | (self._certain if certain else 0),
        )
        is_read = not matched.isdisjoint(self._read)
        says_more = is_read or facts != TextFacts(
            is_training_line=facts.is_training_line,
            device_only=facts.device_only,
            batch_system_only=facts.batch_system_only,
            training_word_kinds=facts.training_word_kinds,
        )
        counts, surely = progress.counts(matched)
        return LineForm(matched, facts, is_read, says_more, counts, surely, not says_more and counts is surely)

    def _facts_of(self, text: str, numbers: tuple[int, ...]) -> TextFacts:
        """Returns the facts of a text that matches these regexes."""
        matched, facts, *_ = self.form_of(numbers)
        if self.gpu_programs in matched and self.gpu_programs.compiled.search(text):
            return TextFacts(other_program=True, on_gpus=True)
        other_program = any(regex in matched and regex.compiled.search(text) for regex in self.other_programs)
        if other_program and matched.isdisjoint((self.training, self.devices)):
            # the words about training mean something else in this line
            facts = facts._replace(is_training_line=False, batch_system_only=False, training_word_kinds=0)
        return facts._replace(
            world_size=launchers.world_size(text, matched),
            exit_code=launchers.exit_code(text, matched),
            versions=self.versions.printed(text, matched),
            other_program=other_program,
            hosts=hosts.named(text, matched),
            placed=hosts.placed(text, matched),
            executed=hosts.executed(text, matched),
        )
