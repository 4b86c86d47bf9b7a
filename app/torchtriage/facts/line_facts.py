"""Extracts facts from the text of single lines, given the signs that match it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torchtriage.domain.line import Line
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts import hosts, launchers, progress, versions
from torchtriage.facts.launchers import LauncherSigns
from torchtriage.facts.registry import line_facts
from torchtriage.facts.sign import Shown, Sign, sign_of, signs_by_name
from torchtriage.facts.versions import Bounds, VersionSigns

ENOUGH_OF_FIELD = 10  # lines; a log with this many lines about training is a training log, whatever else is in it
MAX_LENGTH = 2000  # characters of a text that are read
_START = 80  # characters
# Several signs instead of one: if RE2's automaton outgrows its memory, each search prints a warning and is many times
# slower.
_OTHER_PROGRAMS = ("languages", "builds", "servers", "machines", "services", "simulations")


class Told(NamedTuple):
    """The facts of one line's text. They do not depend on its place in the log."""

    launcher: str | None = None
    world_size: int | None = None
    exit_code: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    bounds: Bounds = (None, None)
    phase: str | None = None
    well: bool = False
    wound_up: bool = False
    joined: bool = False
    refused: bool = False
    serves: bool = False
    logging_error: bool = False
    foreign: bool = False
    on_gpus: bool = False  # a line of another program that uses GPUs
    of_field: bool = False
    of_devices: bool = False  # mentions training only by words for devices
    around: bool = False  # mentions only the batch system
    kinds: int = 0  # kinds of words about training, as a bit mask
    hosts: tuple[str, ...] = ()
    placed: tuple[tuple[int, str], ...] = ()  # (rank, host)
    executed: tuple[str, ...] = ()  # hosts on which a batch system ran the job


class Form(NamedTuple):
    """The common properties of lines that match the same signs. `told`: the facts that follow from the signs alone; if
    `is_read` is false, there are no others. `says_more`: the facts are more than that this is a training log. `counts`:
    the lines may show progress; `surely`: they do. `passes`: they show at most that the run continues."""

    shown: Shown
    told: Told
    is_read: bool
    says_more: bool
    counts: bool
    surely: bool
    passes: bool


def start(line: Line) -> str:
    """Returns the start of a line with its label if the two forms show the torch version, else an empty string."""
    told = line.text[:1] in ("T", "[") or "Error: " in line.text or line.raw[:2] == "[2"
    if not told or line.raw.lstrip()[:1] != "[":
        return ""
    label, _, behind = line.raw[:_START].partition("]")
    numbered = label[:5] == "[rank" and label[5:].isdecimal()  # the text after it is the same on all ranks
    return f"[rank0]{behind}" if numbered else line.raw[:_START]


class LineSigns:
    """The signs that are searched in lines, with their indexes, and the facts that follow from them. Created once per
    vocabulary. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        def listed(name: str) -> Sign:
            return sign_of(vocabulary.patterns(name))

        self.line_facts = line_facts(vocabulary)
        self.launchers, self.versions = LauncherSigns(vocabulary), VersionSigns(vocabulary)
        self.phases = signs_by_name(vocabulary.patterns("phases"))
        self.well, self.wound_up = listed("run-ended-well"), listed("run-wound-up")
        self.joined, self.refused, self.serves = listed("wait-ended"), listed("request-refused"), listed("server-up")
        self.logging_errors = listed("logging-errors")
        self.waits_for_ranks, self.waits_for_nodes = listed("waits-for-ranks"), listed("waits-for-nodes")
        self.entry_points = frozenset(vocabulary.words("traceback-entry-points"))
        self.training, self.devices = listed("training-words"), listed("device-words")
        self.around = listed("batch-system-words")
        self.hints = tuple(sign_of([item]) for item in vocabulary.patterns("training-loop-words"))
        self.gpu_programs = listed("other-programs-on-gpus")
        self.other_programs = (self.gpu_programs, *(listed(f"other-programs-{name}") for name in _OTHER_PROGRAMS))
        self.people_asking, self.other_fields = listed("people-asking"), listed("other-fields")
        self.accelerator_jobs = listed("accelerator-jobs")
        of_course = (
            self.well, self.wound_up, self.joined, self.refused, self.serves, self.logging_errors, *self.phases.values(),
        )  # fmt: skip
        of_field = (self.around, self.training, self.devices, *self.hints)
        self.all: tuple[Sign, ...] = (
            *self.launchers.by_name.values(), *launchers.SIGNS, *self.versions.all, *progress.SIGNS, *of_course, *hosts.SIGNS,
            *self.other_programs, *of_field,
        )  # fmt: skip
        # Most lines of most logs match one of these. After enough matches, they need not be searched any more.
        self.of_field = frozenset(map(self.all.index, of_field))
        self.path = self.all.index(versions.PATH)
        # After this many lines, further matches of these signs add nothing.
        self.enough = {
            self.all.index(self.training): ENOUGH_OF_FIELD,
            self.all.index(self.devices): ENOUGH_OF_FIELD,
            self.path: 1,
        }
        self.sure = frozenset(number for number, sign in enumerate(self.all) if sign.is_pointed_at)
        # For these signs, the text around them must be read too.
        self._read = frozenset((*launchers.SIGNS, *self.versions.printed_signs, *self.other_programs, *hosts.SIGNS))
        self._certain = 0b11 << len(self.hints)  # as much as two kinds of hints
        # Most lines of a log match the same signs, and ranks print the same lines.
        self.form_of = lru_cache(maxsize=1024)(self._form_of)
        self.told_by = lru_cache(maxsize=4096)(self._told_by)

    def shown_by(self, text: str, pointed: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the indexes of the signs that match a text, out of those that a scan for their pointers proposed."""
        whole = len(text) <= MAX_LENGTH
        if whole and self.sure.issuperset(pointed):
            return pointed
        return tuple(at for at in pointed if (whole and at in self.sure) or self.all[at].shows(text[:MAX_LENGTH]))

    def _form_of(self, numbers: tuple[int, ...]) -> Form:
        """Returns the common properties of lines that match these signs."""
        shown = frozenset(self.all[number] for number in numbers)
        by_words = self.training in shown or not shown.isdisjoint(self.hints)
        of_field = by_words or self.devices in shown
        certain = not shown.isdisjoint((self.training, self.devices, self.around))
        told = Told(
            launcher=self.launchers.outermost(shown),
            bounds=versions.bounds(shown),
            phase=next((name for name, sign in self.phases.items() if sign in shown), None),
            well=self.well in shown,
            wound_up=self.wound_up in shown,
            joined=self.joined in shown,
            refused=self.refused in shown,
            serves=self.serves in shown,
            logging_error=self.logging_errors in shown,
            of_field=of_field,
            of_devices=of_field and not by_words,
            around=self.around in shown and not of_field,
            kinds=sum(1 << kind for kind, hint in enumerate(self.hints) if hint in shown)
            | (self._certain if certain else 0),
        )
        is_read = not shown.isdisjoint(self._read)
        says_more = is_read or told != Told(
            of_field=told.of_field, of_devices=told.of_devices, around=told.around, kinds=told.kinds
        )
        counts, surely = progress.counts(shown)
        return Form(shown, told, is_read, says_more, counts, surely, not says_more and counts is surely)

    def _told_by(self, text: str, numbers: tuple[int, ...]) -> Told:
        """Returns the facts of a text that matches these signs."""
        shown, told, *_ = self.form_of(numbers)
        if self.gpu_programs in shown and self.gpu_programs.regex.search(text):
            return Told(foreign=True, on_gpus=True)
        foreign = any(sign in shown and sign.regex.search(text) for sign in self.other_programs)
        if foreign and shown.isdisjoint((self.training, self.devices)):
            # the words about training mean something else in this line
            told = told._replace(of_field=False, around=False, kinds=0)
        return told._replace(
            world_size=launchers.world_size(text, shown),
            exit_code=launchers.exit_code(text, shown),
            versions=self.versions.printed(text, shown),
            foreign=foreign,
            hosts=hosts.named(text, shown),
            placed=hosts.placed(text, shown),
            executed=hosts.executed(text, shown),
        )
