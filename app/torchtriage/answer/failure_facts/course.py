"""How the failure stands in its run: which ranks failed, waited or never came, how far apart, and what is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from signal import Signals

from torchtriage.answer.failure_facts.failure import Failure, is_users
from torchtriage.answer.run_facts import exit_of
from torchtriage.domain.entry import Role
from torchtriage.domain.fact import Fact
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import RankMark
from torchtriage.reading.prefixes.times import seconds_between

JOB_KINDS = "job-kinds"  # the list of the vocabulary: words of scripts and functions by the kind of job
_MISSED = frozenset({"missing", "few", "behind"})  # reasons that name ranks that the others waited for
_SIGNALS = {int(one): one.name for one in Signals}
_SHORT = 4  # letters of a word that counts only as a whole


def course(failure: Failure) -> Iterator[Fact]:
    """`failed_ranks`, `waiting_ranks`, `missing_ranks`, `stopped_ranks`; `behind_ranks` with `behind_call` and
    `behind_sequence`, and `ahead_ranks` with the same, where ranks waited in other collectives; `spread` between the
    first and the last rank that failed, `same_second` where that is none; `signal` that an exit status tells;
    `attempt_count`, `attempt`, `host_count`, `seconds_after_failure`; `checkpoint_time`, `checkpoint_age`,
    `steps_since_checkpoint`; `job_kind`."""
    yield from _ranks(failure)
    yield from _behind(failure)
    yield from _spread(failure)
    if (signal := _signal(failure.run.exit_code)) is not None:
        ended = exit_of(failure.choice, failure.reading)
        yield failure.fact("signal", signal, line=ended.line if ended else None)
    yield from _run(failure)
    yield from _since_checkpoint(failure)
    if (kind := _job_kind(failure)) is not None:
        yield Fact("job_kind", kind)


def _ranks(failure: Failure) -> Iterator[Fact]:
    missing = _missing(failure)
    # The first that reports a wait for a rank that never came is one of those that waited.
    waited = missing is not None and any(map(failure.finding.has_role, (Role.TIMEOUT, Role.PEER_LOSS)))
    kinds = (
        ("failed_ranks", {"failed"} if waited else {"failed", "first"}),
        ("waiting_ranks", {"waited", "first"} if waited else {"waited"}),
        ("stopped_ranks", {"stopped"}),
    )
    gone = _gone(failure, missing)
    for name, wanted in kinds:
        marks = [mark for mark in failure.marks if mark.kind in wanted]
        if name == "waiting_ranks":
            marks = [mark for mark in marks if not gone.issuperset(mark.ranks)]
        if marks:
            yield _of_marks(failure, name, marks, gone if name == "waiting_ranks" else frozenset())
    if missing is not None:
        yield missing


def _gone(failure: Failure, missing: Fact | None) -> frozenset[int]:
    """-> the ranks that never came: what one of them printed at its end is no wait. Ranks that are behind do wait, in
    an earlier collective."""
    if missing is None or any(reason.name == "behind" for reason in failure.root.because):
        return frozenset()
    return frozenset(RankSet.from_json(str(missing.value)))


def _behind(failure: Failure) -> Iterator[Fact]:
    """Yields who waited in an earlier collective than the others, and in which ones both did."""
    reading = failure.reading
    collectives = reading.extractors.collectives
    suspects = collectives.suspects(reading.environment.world_size)
    if suspects is None or suspects.why != "behind":
        return
    for side, sequence in (("behind", suspects.sequence), ("ahead", suspects.others)):
        waits = [wait for wait in collectives.waits() if wait.sequence == sequence]
        if waits and sequence is not None:
            line, calls = waits[0].line, {wait.operation for wait in waits}
            yield failure.fact(f"{side}_ranks", str(RankSet.of(wait.rank for wait in waits)), line=line)
            yield failure.fact(f"{side}_sequence", sequence, line=line)
            if len(calls) == 1 and (call := calls.pop()) is not None:
                yield failure.fact(f"{side}_call", call, line=line)


def _missing(failure: Failure) -> Fact | None:
    told = next((reason for reason in failure.root.because if reason.name in _MISSED), None)
    if told is not None and told.values.get("ranks") is not None:
        return replace(failure.fact("missing_ranks", str(told.values["ranks"])), rank=None)
    missing = [mark for mark in failure.marks if mark.kind == "missing"]
    return _of_marks(failure, "missing_ranks", missing) if missing else None


def _of_marks(failure: Failure, name: str, marks: Iterable[RankMark], without: frozenset[int] = frozenset()) -> Fact:
    marks = list(marks)
    ranks = RankSet.of(rank for mark in marks for rank in mark.ranks if rank not in without)
    return Fact(name, str(ranks), None, marks[0].line, marks[0].file, None, failure.root.attempt or None)


def _spread(failure: Failure) -> Iterator[Fact]:
    """Yields how many seconds lie between the first and the last rank that failed on its own."""
    span, places = failure.reading.environment.span, failure.finding.places.values()
    told = [span.dated(place.time) for place in places]
    others = [mark for mark in failure.marks if mark.kind == "failed"]
    told += [time for mark in others for time in (mark.time, mark.until)]
    times = sorted(filter(None, told))
    seconds = seconds_between(times[0], times[-1]) if len(times) > 1 else None
    if seconds is None:
        return
    yield failure.fact("spread", round(seconds, 3), "s")
    if seconds < 1:
        count = len(failure.finding.ranks | {rank for mark in others for rank in mark.ranks})
        yield failure.fact("same_second", count, "ranks")


def _signal(exit_code: int | None) -> str | None:
    """-> the signal that an exit status of Python or of a shell stands for."""
    if exit_code is None:
        return None
    return _SIGNALS.get(-exit_code if exit_code < 0 else exit_code - 128)


def _run(failure: Failure) -> Iterator[Fact]:
    run, root = failure.run, failure.root
    if run.attempts > 1:
        yield Fact("attempt_count", run.attempts)
        yield failure.fact("attempt", root.attempt)
    if len(run.hosts) > 1:
        yield Fact("host_count", len(run.hosts), "hosts")
    if run.seconds_after_failure:
        yield Fact("seconds_after_failure", run.seconds_after_failure, "s")


def _since_checkpoint(failure: Failure) -> Iterator[Fact]:
    run = failure.run
    saved = run.checkpoint
    if saved is None:
        return
    if saved.time is not None:
        yield Fact("checkpoint_time", saved.time, None, saved.line, saved.file)
        age = seconds_between(saved.time, failure.root.time)
        if age is not None and age >= 0:
            yield Fact("checkpoint_age", round(age), "s", saved.line, saved.file)
    if run.step is not None and saved.step is not None and run.step >= saved.step:
        yield Fact("steps_since_checkpoint", run.step - saved.step, "steps", saved.line, saved.file)


def _job_kind(failure: Failure) -> str | None:
    """-> what the job does: by the words of its outermost script and functions, else by what the log shows of it."""
    words = failure.reading.matcher.patterns.vocabulary.groups(JOB_KINDS)
    raised = failure.raised
    own = [frame for frame in (raised.frames if raised else ()) if is_users(frame)]
    for text in (text for frame in own[:3] for text in (re.split(r"[/\\]", frame.file)[-1], frame.function)):
        found = _words(tuple(words.items())).search(text.lower())
        if found is not None and found.lastgroup is not None:
            return list(words)[int(found.lastgroup[1:])]
    if failure.reading.environment.serves:
        return "inference"
    if failure.run.phase == "evaluate":
        return "evaluation"
    trains = failure.reading.environment.progress or failure.run.phase in ("train", "save")
    return "training" if trains else None


@lru_cache(maxsize=8)
def _words(kinds: tuple[tuple[str, tuple[str, ...]], ...]) -> re.Pattern[str]:
    """-> a regex whose groups `k0`, `k1` … are the kinds. Of a long word its beginning will do."""
    ends = [[re.escape(word) + ("" if len(word) > _SHORT else r"(?![a-z])") for word in words] for _, words in kinds]
    groups = (f"(?P<k{at}>{'|'.join(words)})" for at, words in enumerate(ends))
    return re.compile(rf"(?<![a-z])(?:{'|'.join(groups)})")
