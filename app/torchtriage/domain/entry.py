"""An entry of the knowledge base: a cause or consequence that logs show, or advice that is found by searching.

No slots here: each start reads thousands of these out of a pickle, which takes three times as long where there are.
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
    """The same sentence in English and in Chinese; a case's Chinese may be missing, and then the English is shown."""

    en: str
    zh: str

    def in_(self, lang: Language) -> str:
        return self.zh or self.en if lang == "zh" else self.en


@dataclass(frozen=True)
class Cause(Text):
    """One reason why it happens; `shown_by`: a regex of RE2 that the failure's own words hold where it is this one."""

    shown_by: str | None = None


class Kind(StrEnum):
    CAUSE = "cause"  # can be the root cause of a failed run
    CONSEQUENCE = "consequence"  # usually follows from another; root cause only when nothing else is there
    ADVICE = "advice"  # no log shows it; a person finds it by searching


class Role(StrEnum):
    """What a match of an entry means to the search for the root cause, beside the entry's kind."""

    DISTRIBUTED_SYMPTOM = "distributed-symptom"  # speaks of a peer, a link, the launcher or the pace of the run
    TIMEOUT = "timeout"  # ranks gave up waiting for others in a collective
    PEER_LOSS = "peer-loss"  # a rank gave up waiting for a peer or lost it; the one rank without it is the suspect
    POSSIBLE_PEER_LOSS = "possible-peer-loss"  # a cause, but ranks also show it when a peer leaves them
    RANKS_DISAGREE = "ranks-disagree"  # ranks called different things; which of them is wrong this does not tell
    LAUNCHER_ECHO = "launcher-echo"  # a launcher says that a program it started failed, not why
    TEARDOWN = "teardown"  # the launcher was told to end the job; what ranks missed before that is the cause
    WHOLE_JOB = "whole-job"  # speaks of a job or pod as a whole, of no single rank
    PROCESS_END = "process-end"  # how a process ended: by a signal, or for its memory
    ABORT = "abort"  # a process aborted itself, as after a C++ exception that nobody caught
    NOT_STARTED = "not-started"  # a task or container could not be started
    REJECTED = "rejected"  # the scheduler refused a job or a step
    CANCELLED = "cancelled"  # a person stopped the run
    SLOW_OR_HUNG = "slow-or-hung"  # the run is slow or stands still, which a program rarely says about itself


@dataclass(frozen=True)
class Sign:
    """A pattern of an entry. Exactly one of `regex`, `text` and `all` is set.

    `regex` is RE2 and Hyperscan syntax, searched in an event's text; `text` is found literally, and nearly by the
    near matcher. `all` holds signs that must all be found in the run, the first of them in the event itself.
    `where` narrows which texts are searched ("any": all). `unless`: a regex that must not be found in the same text.
    `weak`: the line alone does not mean that a run failed. `broad`: it tells no more than who refused; it counts only
    where no other sign matches the same event, and before catch-alls.
    """

    regex: str | None = None
    text: str | None = None
    all: tuple[Sign, ...] = ()
    where: str = "any"
    unless: str | None = None
    weak: bool = False
    broad: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """-> what is pickled: what differs from the defaults, which the class has. A start reads thousands of signs."""
        return {name: value for name, value in vars(self).items() if value != getattr(type(self), name)}


@dataclass(frozen=True)
class Fix:
    """One way to fix a cause; `applies` names the versions or settings for which it does, `shown_by` (as a cause's)
    is found in the words of the failures that it is for."""

    title: Text
    detail: Text | None = None
    commands: tuple[str, ...] = ()
    applies: str = "any"
    shown_by: str | None = None


@dataclass(frozen=True)
class Advice:
    """What a scheduler should do: `retry` is yes, no or once; `exclude_hosts` says whether the failing host is bad.

    `shown_by` (as a cause's): of the failures that say these words.
    """

    advice: str
    retry: str
    exclude_hosts: bool = False
    shown_by: str | None = None

    @property
    def retry_word(self) -> str:
        """What each page says of a retry: yes, no, once or elsewhere."""
        return retry_word(self.retry, self.advice)


@dataclass(frozen=True)
class Step:
    """One thing to do, for this run: a sentence and, where there is one, the command. Both have slots (`{path}`).

    `when` as a case's; `run` is left out where a slot of it is not filled, the whole step where one of the sentence is.
    `runs_on`: the fact that tells how `run` is started on each host of the job, where one host's answer is not enough.
    """

    do: Text
    run: str | None = None
    when: tuple[Condition, ...] = ()
    runs_on: str | None = None


@dataclass(frozen=True)
class Condition:
    """What a fact must be: `regex` (of RE2, searched in its value; its named groups fill slots), or `known` or not."""

    fact: str
    regex: str | None = None
    known: bool = True

    @property
    def kept_as(self) -> str:
        """The name under which an answer keeps that the log holds the regex, as it does not keep the log itself."""
        return f"log: {self.regex}"


@dataclass(frozen=True)
class Case:
    """One message or one branch of an entry: how it is told apart, what it says, what to do.

    `signs` are signs of the entry too, each a wording of the same failure; the named groups of the one that is found
    fill slots. Without any the case speaks of any failure of the entry for which `when` holds; its `finding_signs` then
    only find the entry: this case speaks of their messages where no narrower one does. `says` and `unknown` are
    sentences with slots; what is in `[[…]]` goes where one of its slots is not filled. `action` takes the place of the
    entry's. `telling` is found in the line that shows it best, where that is not the one at which the sign begins.
    `source` names where the message comes from, with its version or date; `expect` is what the case says about
    `example`. `other_examples` show the signs behind the first, or the `finding_signs`, in their order. `pack` is the
    name and version of the pack that added it to an entry, empty where none did.
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
        """The signs of the entry that stand in this case."""
        return (*self.signs, *self.finding_signs)


@dataclass(frozen=True)
class Entry:
    """One entry; its id is its path under the knowledge base, `area.name`.

    `catch_all` marks an entry that only counts where no other entry matches the same event, `general` one whose
    messages every kind of program prints: it counts only in the log of a training run.
    `roles` holds its own roles and those of its area. Of the `cases` the first that holds speaks; their signs are in
    `signs` too, behind those that belong to no case; `case_of_signs` has for each sign the place of its case among the
    cases, None where it belongs to none.
    `pack` is the name and version of the pack that it comes from, empty where it comes from none.
    `addition`: it is only cases that a file adds to the entry of this id.
    `explains` are globs over entry ids: what follows from this one. Of `other_actions` the first that the failure's
    words show takes the place of `action`.

    A start reads hundreds of entries, of which one at most has something to say: a pickled entry keeps its texts as
    bytes until somebody asks for one.
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
        """-> the messages of the entry, each once: its own examples, and those of further wordings of its cases that
        are one line. The last line of a traceback that frames tell is none."""
        wordings = (example.strip() for case in self.cases for example in case.other_examples)
        of_cases = (example for example in wordings if example and "\n" not in example)
        return tuple(dict.fromkeys((*self.match_examples, *of_cases)))

    def __getstate__(self) -> dict[str, Any]:
        """-> what is pickled: what is asked of all entries, and as bytes what each of them has to say."""
        said = pickle.dumps({name: getattr(self, name) for name in _SAID}, protocol=5)
        return {name: value for name, value in vars(self).items() if name not in _SAID} | {"_said": said}

    def __getattr__(self, name: str) -> Any:
        """Reads what the entry says when it is first asked for."""
        said = vars(self).get("_said")  # stays, as two threads may ask at once
        if said is None or name not in _SAID:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        vars(self).update(pickle.loads(said))  # our own bytes, part of a pickle that is sealed
        return vars(self)[name]


_SAID = ("title", "causes", "fixes", "cases", "checks", "prevent", "references", "asks", "match_examples",
         "no_match_examples")  # fmt: skip


@dataclass(frozen=True)
class KnowledgeBase:
    """All entries by id, the digest of the files they came from (`sha256:…`), the vocabulary, and the message forms:
    files of cases that speak of any message of their wording which no case of the failure's entry knows. A file is an
    entry that nothing matches."""

    entries: dict[str, Entry]
    digest: str
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    forms: tuple[Entry, ...] = ()

    def all_forms(self) -> Iterator[Case]:
        """Yields the message forms in the order in which they are tried."""
        for file in self.forms:
            yield from file.cases

    def form(self, form: str | None) -> Case | None:
        """-> the message form of this id; None where there is none."""
        return next((case for case in self.all_forms() if case.id == form), None)
