"""An entry of the knowledge base: a cause or consequence that logs show, or advice that people find by searching.

These classes have no slots: each start unpickles thousands of them, and slots make that three times slower.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from torchtriage.domain.retry import retry_word
from torchtriage.domain.vocabulary import Vocabulary

Language = Literal["en", "zh"]


@dataclass(frozen=True)
class Text:
    """The same sentence in English and in Chinese. A case may lack the Chinese; then the English is shown."""

    en: str
    zh: str

    def in_(self, lang: Language) -> str:
        return self.zh or self.en if lang == "zh" else self.en


@dataclass(frozen=True)
class Cause(Text):
    """One possible reason for a failure. `shown_by` is an RE2 regex that matches the failure's messages if this is the
    reason."""

    shown_by: str | None = None


class Kind(StrEnum):
    CAUSE = "cause"  # can be the root cause of a failed run
    CONSEQUENCE = "consequence"  # usually follows from another entry; a root cause only if nothing else is found
    ADVICE = "advice"  # not shown by any log; people find it by searching


class Role(StrEnum):
    """What a match of the entry means for the search for the root cause, in addition to the entry's kind."""

    DISTRIBUTED_SYMPTOM = "distributed-symptom"  # is about a peer, a link, the launcher or the speed of the run
    TIMEOUT = "timeout"  # ranks timed out in a collective while they waited for others
    PEER_LOSS = "peer-loss"  # a rank timed out waiting for a peer or lost it; the one rank without it is the suspect
    POSSIBLE_PEER_LOSS = "possible-peer-loss"  # a cause, but ranks also show it after a peer has exited
    RANKS_DISAGREE = "ranks-disagree"  # ranks called different things; this does not show which of them is wrong
    LAUNCHER_ECHO = "launcher-echo"  # a launcher reports that a program it started failed, but not why
    TEARDOWN = "teardown"  # the launcher was told to end the job; if ranks had timed out before, that is the cause
    WHOLE_JOB = "whole-job"  # is about a job or pod as a whole, not about one rank
    PROCESS_END = "process-end"  # how a process ended: by a signal, or because of its memory
    ABORT = "abort"  # a process aborted itself, for example after an uncaught C++ exception
    NOT_STARTED = "not-started"  # a task or container could not be started
    REJECTED = "rejected"  # the scheduler refused a job or a step
    CANCELLED = "cancelled"  # a person stopped the run
    SLOW_OR_HUNG = "slow-or-hung"  # the run is slow or hangs, which a program rarely says about itself


@dataclass(frozen=True)
class Sign:
    """A pattern of an entry. Exactly one of `regex`, `text` and `all` is set.

    `regex` has RE2 and Hyperscan syntax and is searched in an event's text. `text` is searched literally, and the near
    matcher also finds similar texts. `all` are signs that must all match in the run, the first of them in the event
    itself. `where` limits which texts are searched ("any": all). `unless` is a regex that must not match the same text.
    `weak`: the line alone does not mean that a run failed. `broad`: the pattern shows only who refused something. It
    counts only if no other sign matches the same event, but before catch-alls.
    """

    regex: str | None = None
    text: str | None = None
    all: tuple[Sign, ...] = ()
    where: str = "any"
    unless: str | None = None
    weak: bool = False
    broad: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Returns what is pickled: only values that differ from the defaults, because each start reads thousands of
        signs."""
        return {name: value for name, value in vars(self).items() if value != getattr(type(self), name)}


@dataclass(frozen=True)
class Fix:
    """One way to fix a cause. `applies` names the versions or settings that it is for. `shown_by` is a regex as in a
    cause: the fix is for failures whose messages it matches."""

    title: Text
    detail: Text | None = None
    commands: tuple[str, ...] = ()
    applies: str = "any"
    shown_by: str | None = None


@dataclass(frozen=True)
class Advice:
    """What a scheduler should do. `retry` is yes, no or once; `exclude_hosts` says whether the failing host is bad.

    `shown_by` is a regex as in a cause: the advice is for failures whose messages it matches.
    """

    advice: str
    retry: str
    exclude_hosts: bool = False
    shown_by: str | None = None

    @property
    def retry_word(self) -> str:
        """The word for a retry that all pages use: yes, no, once or elsewhere."""
        return retry_word(self.retry, self.advice)


@dataclass(frozen=True)
class Rewrite:
    """How to correct the user's line of code: `find` is an RE2 regex, `replace` the text to put in place of its first
    match (`\\1` is a group). Both may have slots; a value in `find` is searched literally."""

    find: str
    replace: str


@dataclass(frozen=True)
class Step:
    """One thing to do for this run: a sentence, and possibly a command. Both may have slots (`{path}`).

    `when` works as in a case. `run` is left out if one of its slots has no value; the whole step is left out if a slot
    of the sentence has none. `runs_on` is the fact that says how to start `run` on each host of the job, if one host is
    not enough. The step is also left out if one of the conditions in `unless` is met. If `rewrite` changes the user's
    line of code, the corrected line is shown in place of `run`.
    """

    do: Text
    run: str | None = None
    when: tuple[Condition, ...] = ()
    runs_on: str | None = None
    rewrite: Rewrite | None = None
    unless: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Condition:
    """A condition on a fact: its value matches `regex` (an RE2 regex whose named groups fill slots), or the fact is or
    is not `known`."""

    fact: str
    regex: str | None = None
    known: bool = True

    @property
    def kept_as(self) -> str:
        """The name under which an answer stores whether the log matches the regex. The log itself is not kept in the
        answer."""
        return f"log: {self.regex}"


@dataclass(frozen=True)
class Case:
    """One message or one branch of an entry: how to recognize it, what it says, and what to do.

    `signs` are also signs of the entry. Each is a wording of the same failure, and the named groups of the one that
    matches fill slots. A case without signs is for any failure of the entry that satisfies `when`; its `finding_signs`
    then only find the entry, and the case answers their messages if no narrower case does. `says` and `unknown` are
    sentences with slots; a part in `[[…]]` is left out if one of its slots has no value. `action` replaces the entry's
    action. `telling` matches the line that shows the failure best, if that is not the first line of the sign. `source`
    names the origin of the message, with its version or date. `expect` is the case's answer for `example`.
    `other_examples` are for the signs after the first, or for the `finding_signs`, in their order. `pack` is the name
    and version of the pack that added the case, or empty.
    """

    id: str
    says: Text
    signs: tuple[Sign, ...] = ()
    finding_signs: tuple[Sign, ...] = ()
    when: tuple[Condition, ...] = ()
    unknown: Text | None = None
    steps: tuple[Step, ...] = ()
    action: Advice | None = None
    telling: str | None = None
    source: str = ""
    example: str | None = None
    other_examples: tuple[str, ...] = ()
    expect: Text | None = None
    pack: str = ""

    @property
    def all_signs(self) -> tuple[Sign, ...]:
        """The signs of the entry that belong to this case."""
        return (*self.signs, *self.finding_signs)


@dataclass(frozen=True)
class Entry:
    """One entry. Its id is its path under the knowledge base, `area.name`.

    `catch_all`: the entry counts only if no other entry matches the same event. `general`: any kind of program prints
    its messages, so it counts only in the log of a training run. `roles` are its own roles and those of its area. The
    first of the `cases` whose conditions are met answers. Signs of the cases are also in `signs`, after the signs
    without a case; `case_of_signs` has the index of its case for each sign, or None. `pack` is the name and version of
    the pack that it comes from, or empty. `addition`: a file that only adds cases to the entry with this id. `explains`
    are globs over the ids of entries that follow from this one. The first of `other_actions` that matches the failure's
    messages replaces `action`.

    Each start reads hundreds of entries, and at most one is used in an answer. So a pickled entry stores its texts as
    bytes until they are needed.
    """

    id: str
    kind: Kind
    area: str
    owner: str
    title: Text
    signs: tuple[Sign, ...]
    action: Advice
    causes: tuple[Cause, ...]
    fixes: tuple[Fix, ...]
    cases: tuple[Case, ...] = field(default_factory=tuple)
    other_actions: tuple[Advice, ...] = ()
    explains: tuple[str, ...] = ()
    capture: tuple[tuple[str, str], ...] = ()
    checks: tuple[str, ...] = field(default_factory=tuple)
    prevent: tuple[Text, ...] = field(default_factory=tuple)
    affected: str | None = None
    fixed: str | None = None
    references: tuple[str, ...] = field(default_factory=tuple)
    asks: tuple[tuple[Language, str], ...] = field(default_factory=tuple)
    match_examples: tuple[str, ...] = field(default_factory=tuple)
    no_match_examples: tuple[str, ...] = field(default_factory=tuple)
    catch_all: bool = False
    general: bool = False
    roles: frozenset[Role] = frozenset()
    file: str = ""
    pack: str = ""
    case_of_signs: tuple[int | None, ...] = ()
    addition: bool = False

    def messages(self) -> tuple[str, ...]:
        """Returns the messages of the entry, each once: its own examples, and examples of its cases that have one line.
        The last line of a traceback that is recognized by its frames is left out."""
        wordings = (example.strip() for case in self.cases for example in case.other_examples)
        of_cases = (example for example in wordings if example and "\n" not in example)
        return tuple(dict.fromkeys((*self.match_examples, *of_cases)))

    def __getstate__(self) -> dict[str, Any]:
        """Returns what is pickled: the values that are needed for all entries, and the texts as bytes."""
        said = pickle.dumps({name: getattr(self, name) for name in _SAID}, protocol=5)
        return {name: value for name, value in vars(self).items() if name not in _SAID} | {"_said": said}

    def __getattr__(self, name: str) -> Any:
        """Reads the texts of the entry when they are first used."""
        said = vars(self).get("_said")  # kept, because two threads may ask at once
        if said is None or name not in _SAID:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        vars(self).update(pickle.loads(said))  # our own bytes, part of a pickle that is sealed
        return vars(self)[name]


_SAID = ("title", "causes", "fixes", "cases", "checks", "prevent", "references", "asks", "match_examples",
         "no_match_examples")  # fmt: skip


@dataclass(frozen=True)
class KnowledgeBase:
    """All entries by id, a digest of their files (`sha256:…`), the vocabulary, and the message forms.

    The message forms are files of cases. Such a case answers any message of its wording that no case of the failure's
    entry answers. Each file is an entry that has no signs.
    """

    entries: dict[str, Entry]
    digest: str
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    forms: tuple[Entry, ...] = ()

    def all_forms(self) -> Iterator[Case]:
        """Yields the message forms in the order in which they are tried."""
        for file in self.forms:
            yield from file.cases

    def form(self, form: str | None) -> Case | None:
        """Returns the message form with this id, or None."""
        return next((case for case in self.all_forms() if case.id == form), None)
