"""Runs the engine for the service: takes the files of a run, returns a verdict and its summary.

The engine runs in separate processes. So pages stay fast while it reads gigabytes, and no log can stop the service.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol, cast

from torchtriage.answer.explain_match import Why
from torchtriage.domain.draft import Draft, DraftCheck
from torchtriage.domain.entry import Entry, KnowledgeBase, Language
from torchtriage.domain.incident import VerdictKey, VerdictSummary
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.errors import TriageError
from torchtriage.knowledge.cache import cache_folder
from torchtriage.knowledge.drafted_entry import check_draft, signs_of, with_entry
from torchtriage.matching.sign_exclusion import SignWords
from torchtriage.queue.subprocess_calls import LARGE, CallFailed, Killed, Make, SubprocessPool, result_or_error
from torchtriage.reading.sources import LogFile, Run
from torchtriage.settings import Settings
from torchtriage.storage.blobs import BlobStore

log = logging.getLogger(__name__)
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Order:
    """A run to triage: its files, each with a name and either the path of a temporary file or the sha256 of a stored
    one, and their total size in bytes. `known` has the sender's facts that commands can use, by the names that entries
    give them, and how the job ended."""

    files: tuple[tuple[str, Path | str], ...]
    bytes: int
    lang: Language = "en"
    known: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Triaged:
    """A verdict, and the summary by which it is filtered, grouped and searched."""

    verdict: Verdict
    summary: VerdictSummary


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run that was triaged before, and the key of its verdict; None if that triage failed."""

    order: Order
    key: VerdictKey | None


@dataclass(frozen=True, slots=True)
class DraftResult:
    """The result of triaging a run with one more entry. `entry` is the cause now. `shown`: the added entry is the
    cause, a candidate or part of the cascade. `case` is the answer's case, empty if there is none."""

    outcome: str
    entry: str | None
    shown: bool
    case: str = ""


class Triager(Protocol):
    """What the service uses to triage."""

    def run(self, order: Order) -> Triaged:
        """Triages a run. Raises UnreadableLog, NotFound, StorageUnavailable, CallFailed and Interrupted."""
        ...

    def changed(self, known: list[KnownRun]) -> list[Triaged | TriageError | None]:
        """Triages each run again. Returns None if its verdict is the same, an error if the triage failed, else the new
        verdict."""
        ...

    def why(self, order: Order, entry: str) -> Why:
        """Returns why an entry did or did not match. Raises the same errors as `run`."""
        ...

    def check_draft(self, draft: Draft, taken: tuple[str, ...] = (), whole: bool = True) -> DraftCheck:
        """Returns what the checks of the knowledge base find in a draft. Its id must not be one of `taken`. Without
        `whole`, an added case is checked without the other cases of its entry. Raises CallFailed and Interrupted."""
        ...

    def try_entry(self, entry: Entry, known: list[KnownRun]) -> list[DraftResult | TriageError | None]:
        """Triages each run as if this entry existed. Returns None if its sign is not in the log, and an error if the
        triage failed."""
        ...

    def use(self, knowledge: KnowledgeBase) -> None:
        """Uses this knowledge for all later calls."""
        ...

    def warm(self) -> None:
        """Prepares for the first run, so that it does not have to wait."""
        ...

    def interrupt(self) -> None:
        """Ends the running calls as far as possible."""
        ...

    def close(self) -> None: ...


class InProcess:
    """Triages in the calling thread."""

    def __init__(self, settings: Settings, knowledge: KnowledgeBase) -> None:
        """Raises StorageUnavailable if the blob store cannot be opened."""
        self._memory = settings.triage_memory
        self._blobs = BlobStore(settings.blobs, settings.data_dir)
        self._knowledge = knowledge
        self._engine = Engine(knowledge, cache_folder())
        self._engine_with: tuple[Entry, Engine] | None = None  # the latest one, for drafts

    def run(self, order: Order) -> Triaged:
        verdict = self._engine.triage(_run(self._blobs, order), order.lang, dict(order.known))
        return Triaged(verdict, summary_of(verdict, self._knowledge))

    def changed(self, known: list[KnownRun]) -> list[Triaged | TriageError | None]:
        return [result_or_error(self._changed, (one,), self._memory) for one in known]

    def _changed(self, known: KnownRun) -> Triaged | None:
        order = known.order
        verdict = self._engine.triage(_run(self._blobs, order), order.lang, dict(order.known))
        if known.key is not None and key_of(verdict).says_same_as(known.key):
            return None  # most verdicts are the same, and making a summary takes time
        return Triaged(verdict, summary_of(verdict, self._knowledge))

    def why(self, order: Order, entry: str) -> Why:
        return self._engine.why(_run(self._blobs, order), entry)

    def check_draft(self, draft: Draft, taken: tuple[str, ...] = (), whole: bool = True) -> DraftCheck:
        return check_draft(draft, self._knowledge, drafts_cache(), taken, whole)

    def try_entry(self, entry: Entry, known: list[KnownRun]) -> list[DraftResult | TriageError | None]:
        return [result_or_error(self._draft_result, (entry, one), self._memory) for one in known]

    def _draft_result(self, entry: Entry, known: KnownRun) -> DraftResult | None:
        order = known.order
        words = [_words_of(regex) for regex in signs_of(entry)]
        if not all(one.may_show(_pieces(self._blobs, order)) for one in words):
            return None  # most logs do not, and searching for words takes a hundredth of the time of a triage
        if self._engine_with is None or self._engine_with[0] != entry:
            self._engine_with = entry, Engine(with_entry(self._knowledge, entry), drafts_cache())
        verdict = self._engine_with[1].triage(_run(self._blobs, order), order.lang, dict(order.known))
        root = verdict.root_cause
        named = {*(one.entry for one in verdict.candidates), *(one.entry for one in verdict.cascades)}
        own = root.entry if root else None
        return DraftResult(verdict.outcome, own, entry.id in {own, *named}, _case_of(verdict))

    def use(self, knowledge: KnowledgeBase) -> None:
        self._engine = Engine(knowledge, cache_folder())
        self._knowledge, self._engine_with = knowledge, None

    def warm(self) -> None:
        pass  # nothing to prepare

    def interrupt(self) -> None:
        pass  # a thread cannot be ended from outside

    def close(self) -> None:
        pass


class InProcesses:
    """Triages in `workers` processes. Large logs never occupy all of them.

    Each process uses the knowledge passed to the constructor or to the latest `use`, even if the folders have changed.
    """

    def __init__(self, settings: Settings, knowledge: KnowledgeBase, make: Make | None = None) -> None:
        """`make` creates the function that each process runs; it is replaced in tests."""
        self._settings = settings
        self._processes = SubprocessPool(
            make or _triager, (settings, knowledge), settings.workers, settings.triage_seconds, settings.triage_memory
        )
        self._large = threading.BoundedSemaphore(max(1, settings.workers - 1))

    def run(self, order: Order) -> Triaged:
        with self._large if order.bytes >= LARGE else nullcontext():
            return cast(Triaged, self._call("run", order))

    def changed(self, known: list[KnownRun]) -> list[Triaged | TriageError | None]:
        return cast(list[Triaged | TriageError | None], self._together("changed", known))

    def _together(self, method: str, known: list[KnownRun], *arguments: Any) -> list[Any]:
        """Calls the method for all runs in one process, and returns one answer per run."""
        try:
            with self._large if any(one.order.bytes >= LARGE for one in known) else nullcontext():
                call = self._call if len(known) == 1 else self._processes.call
                return cast(list[Any], call(method, *arguments, known))
        except CallFailed as error:
            if len(known) == 1:
                return [error]
            # One run ended the process, or all of them took too long. Each is run again alone.
            return [answer for one in known for answer in self._together(method, [one], *arguments)]

    def why(self, order: Order, entry: str) -> Why:
        return cast(Why, self._call("why", order, entry))

    def check_draft(self, draft: Draft, taken: tuple[str, ...] = (), whole: bool = True) -> DraftCheck:
        return cast(DraftCheck, self._call("check_draft", draft, taken, whole))

    def try_entry(self, entry: Entry, known: list[KnownRun]) -> list[DraftResult | TriageError | None]:
        return cast(list[DraftResult | TriageError | None], self._together("try_entry", known, entry))

    def _call(self, *arguments: Any) -> Any:
        """Calls a process. If it is killed, calls once more with no other call beside it: another log may have taken
        the memory."""
        try:
            return self._processes.call(*arguments)
        except Killed as error:
            log.warning("%s; trying once more, alone", error.message)
        try:
            return self._processes.call_alone(*arguments)
        except Killed as error:
            raise CallFailed(f"{error.message}, and once more when it ran alone") from None

    def use(self, knowledge: KnowledgeBase) -> None:
        self._processes.renew((self._settings, knowledge))

    def warm(self) -> None:
        self._processes.warm()

    def interrupt(self) -> None:
        self._processes.interrupt()

    def close(self) -> None:
        self._processes.close()


def drafts_cache() -> Path:
    """Returns the cache folder for the compiled patterns of drafts. It is separate, because many drafts would push out
    the patterns in use."""
    return cache_folder() / "drafts"


def key_of(verdict: Verdict) -> VerdictKey:
    """Returns the values that identify a verdict."""
    root = verdict.root_cause
    return VerdictKey(verdict.outcome, root.entry if root else None, verdict.fingerprint, _case_of(verdict))


def summary_of(verdict: Verdict, knowledge: KnowledgeBase) -> VerdictSummary:
    """Returns the summary by which a verdict is filtered, grouped and searched, in both languages."""
    root = verdict.root_cause
    entry = knowledge.entries.get(root.entry) if root and root.entry else None
    texts = [verdict.signature, entry and f"{entry.id}\n{entry.title.en}\n{entry.title.zh}", *verdict.run.hosts]
    if root:
        texts += [root.title, root.host, *(line.text for line in root.evidence)]
        texts += [root.exception.type, root.exception.message] if root.exception else []
    return VerdictSummary(
        outcome=verdict.outcome,
        fingerprint=verdict.fingerprint,
        signature=verdict.signature,
        entry=root.entry if root else None,
        title=root.title if root else None,
        host=root.host if root else None,
        text="\n".join(text for text in texts if text),
        hardware=bool(verdict.action.exclude_hosts),
        case=_case_of(verdict),
    )


def _case_of(verdict: Verdict) -> str:
    return (verdict.answer and verdict.answer.case) or ""


def _triager(settings: Settings, knowledge: KnowledgeBase) -> Any:
    triager = InProcess(settings, knowledge)
    return lambda method, *arguments: getattr(triager, method)(*arguments)


def _run(blobs: BlobStore, order: Order) -> Run:
    def files() -> Iterator[LogFile]:
        for name, place in sorted(order.files):
            yield LogFile(name, partial(_spooled, place) if isinstance(place, Path) else partial(blobs.chunks, place))

    several = len(order.files) > 1
    names = tuple(sorted(name for name, _ in order.files))
    return Run(f"{len(names)} files" if several else names[0], files, several, names)


@lru_cache(maxsize=64)
def _words_of(regex: str) -> SignWords:
    return SignWords(regex)


def _pieces(blobs: BlobStore, order: Order) -> Iterator[bytes]:
    for _, place in order.files:
        yield from _spooled(place) if isinstance(place, Path) else blobs.chunks(place)


def _spooled(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
