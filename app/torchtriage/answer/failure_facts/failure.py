"""The input of all fact functions: the root cause of a run, and everything that was read from its log."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property

from torchtriage.causality.fingerprint import raised_of
from torchtriage.causality.root_cause import Choice
from torchtriage.domain.event import Frame, Raised, Where, without_lookups
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line, Position
from torchtriage.domain.verdict import RankMark, RootCause, RunFacts
from torchtriage.domain.vocabulary import VocabularyPattern
from torchtriage.lazy_regex import lazy_regex
from torchtriage.parsing.tracebacks.grammar import LIBRARY
from torchtriage.reading.redaction.redact import redact
from torchtriage.runs import context_lines
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading

# Code that was generated at run time, a program that pip installed, or Windows' own module folder. Fingerprints count
# these as the user's, so `Frame.user_code` does too.
_OTHERS = lazy_regex(
    r"^<(?!stdin>|ipython-input|command-|cell |tokenize)|/s?bin/[\w-]+$|-py\d\.\d+[\w.-]*\.egg/"
    r"|(?i:\\lib\\(?:[a-z_]\w*\.py$|site-packages\\))"
    r"|(?i:\\scripts\\[\w.-]+\.exe\\__main__\.py$)"
)
_INSTALLED = lazy_regex(r"site-packages|dist-packages|/lib(?:64)?/python\d|^<|\\lib\\")
_OF_WINDOWS_PYTHON = lazy_regex(r"(?i:\\lib\\(\w+)\\)")
# A project may have a folder named torch. `Frame.user_code` and fingerprints count its files as PyTorch's.
_IN_TORCH = lazy_regex(r"/torch/(\w+)(?=[/.])")
_TORCH_MODULES = "torch-modules"
_SOURCE_TREES = "library-source-trees"
_COMPILED = lazy_regex(r"^(?![/\\]|[A-Za-z]:).*\.p(?:yx|xi|xd)(?:\.in)?$")

_CARRIED = lazy_regex(r"\(([A-Z]\w+)\): \S+::")  # (IndexError): ray::TaskRunner.run() (pid=14708, …
_NEAR, _CLOSE = 400, 3  # lines


def _is_in_standard_library(path: str) -> bool:
    """Returns whether a file belongs to a package of the standard library on Windows."""
    found = _OF_WINDOWS_PYTHON.search(path)
    return found is not None and found[1].lower() in sys.stdlib_module_names


def _is_in_own_torch(path: str, modules: tuple[str, ...]) -> bool:
    """Returns whether a file is in a project's own folder named torch: it is not installed, and not one of PyTorch's
    `modules`."""
    found = _IN_TORCH.search(path)
    own = found is not None and not found[1].startswith("_") and found[1] not in modules
    return own and not _INSTALLED.search(path)


@cache
def union_pattern(patterns: tuple[VocabularyPattern, ...]) -> re.Pattern[str]:
    return re.compile("|".join(item.exact for item in patterns))


# Fatal Python error: Segmentation fault / Current thread 0x00007f2 (most recent call first):
_CRASHED = lazy_regex(
    r"^\s*(?:Current t|T)hread 0x[0-9a-f]+ .{0,60}\(most recent call first\):|^Stack \(most recent call first\)"
)
_CRASH_FRAME = lazy_regex(r'^\s*File "([^"\n]{1,500})", line (\d{1,9}) in (\S.{0,200})$')


def crash_frames(failure: Failure) -> tuple[Frame, ...]:
    """Returns the frames that faulthandler printed for the thread that crashed, outermost first."""
    reading, failed, rank = failure.reading, failure.finding.position, failure.root.rank
    lines = list(reading.paste or (line for end in reading.file_ends for line, _ in end))
    below = [
        line for line in lines if -_CLOSE < line.position.lines_below(failed) < _NEAR and line.rank in (None, rank)
    ]
    heads = [at for at, line in enumerate(below) if _CRASHED.match(line.text)]
    head = next((at for at in heads if "Current" in below[at].text), heads[0] if heads else None)
    frames: list[Frame] = []
    for line in below[head + 1 :] if head is not None else ():
        found = _CRASH_FRAME.match(line.text)
        if found is None:
            break
        frames.append(Frame(found[1], int(found[2]), found[3], "", not LIBRARY.search(found[1])))
    return tuple(reversed(frames))


def is_compiled(frame: Frame) -> bool:
    """Returns whether a frame belongs to Cython code from a library (`h5py/h5f.pyx`), whose source is not installed."""
    return _COMPILED.search(frame.file) is not None and not frame.code


@dataclass(frozen=True)
class Failure:
    """The chosen finding, the root cause of the verdict, the run, and what happened to each rank.

    `shown` removes secrets from a text.
    """

    finding: Finding
    root: RootCause
    choice: Choice
    reading: Reading
    run: RunFacts
    marks: tuple[RankMark, ...] = ()
    shown: Callable[[str], str] = redact

    @cached_property
    def raised(self) -> Raised | None:
        """The exception that represents the failure. If it only carries an exception from another process, the result
        is that one, if known. If it was printed without its traceback, the frames come from an exception of the same
        rank that has them."""
        raised = raised_of(self.finding)
        carried = _CARRIED.match(raised.message) if raised else None
        if raised is None or carried is None:
            return self._with_frames(raised) if raised else None
        near = (one for one in self.reading.findings if 0 < one.position.lines_below(self.finding.position) < _NEAR)
        chains = (each for one in sorted(near, key=lambda one: one.position) for each in one.event.chain)
        return next((each for each in chains if each.frames and each.type.endswith(carried[1])), raised)

    def _with_frames(self, raised: Raised) -> Raised:
        if raised.frames or raised.quoted or not raised.type:
            return raised
        finding = self.finding
        same = (
            other
            for other in self.choice.live
            if other.entry == finding.entry is not None
            and other.attempt == finding.attempt
            and other.event.rank == finding.event.rank
        )
        chains = (each for other in same for each in other.event.chain)
        complete = next((each for each in chains if each.frames and each.type == raised.type), None)
        return replace(raised, frames=complete.frames, outer=complete.outer) if complete else raised

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that led to the failure, outermost first. They come from the exception, from the user's code that
        it quotes, or from the stack trace of a crash."""
        raised = self.raised
        if raised is None or not (raised.frames or raised.quoted):
            of_program = self.finding.event.where is Where.EXCEPTION and raised is not None and raised.type
            return () if of_program else crash_frames(self)
        return tuple(frame for frame in (*raised.outer, *raised.frames, *raised.quoted) if frame.file)

    @cached_property
    def frames_without_lookups(self) -> tuple[Frame, ...]:
        """The frames without the last ones in which a class only looks up an attribute, as nn.Module does. The last
        frame left is the line that asked for the attribute."""
        return without_lookups(self.frames, self.raised.type if self.raised else "")

    def is_user_frame(self, frame: Frame) -> bool:
        """Returns whether a frame belongs to code that the reader wrote and would change."""
        path, vocabulary = frame.file, self.reading.matcher.patterns.vocabulary
        if not (frame.user_code or _is_in_own_torch(path, vocabulary.words(_TORCH_MODULES))):
            return False
        if _OTHERS.search(path) or _is_in_standard_library(path) or is_compiled(frame):
            return False
        return union_pattern(vocabulary.patterns(_SOURCE_TREES)).search(path) is None

    @property
    def line(self) -> Line:
        """The line that names the exception, or reports the failure."""
        return self.raised.lines[0] if self.raised and self.raised.lines else self.finding.event.line

    @cached_property
    def printed(self) -> tuple[Line, ...]:
        """The lines that programs printed above the failure, such as options, data and progress, in the order of the
        log. Only lines that the reader kept are included."""
        reading, failed = self.reading, self.begins
        lines = [*reading.opening, *reading.facts.progress_lines, *reading.facts.deferred_lines]
        lines += context_lines.above(reading.above, failed)
        if reading.paste is not None:
            lines += [line for line in reading.paste if line.position not in reading.claimed]
        lines += [line for end in reading.file_ends for line, claimed in end if not claimed]
        same = {(line.position, line.text): line for line in lines if line.position < failed}
        return tuple(same[place] for place in sorted(same))

    @property
    def begins(self) -> Position:
        """The position at which the failure's own text begins."""
        lines = [line for raised in self.finding.event.chain for line in raised.lines] or [self.finding.event.line]
        same = [line.position for line in lines if line.position.file == self.finding.position.file]
        return min(same, default=self.finding.position)

    @cached_property
    def log(self) -> str:
        """What is known of the whole run: the messages of all failures, and the first and last lines of each file. A
        short file is included in full. Secrets are not removed."""
        reading, choice = self.reading, self.choice
        texts = [finding.event.text for finding in (*choice.live, *choice.survived)]
        if reading.paste is not None:
            texts += [line.text for line in reading.paste]
        else:
            texts += [line.text for line in reading.head]
            texts += [line.text for end in reading.file_ends for line, _ in end]
        return "\n".join(texts)

    def fact(self, name: str, value: str | int | float, unit: str | None = None, line: Line | None = None) -> Fact:
        """Returns a fact that comes from `line`, or from the failure's own line by default."""
        at = line or self.line
        return Fact(name, value, unit, at.number, at.file, self.root.rank, self.root.attempt or None)
