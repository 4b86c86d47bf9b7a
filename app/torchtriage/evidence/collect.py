"""Separates evidence from logs. Returns each file to be read as a log or report, or reads it as evidence. At the end,
returns what the dumps and stacks show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath

from torchtriage.domain.evidence import Hang, RankDump, RankStack, RunEvidence, Source
from torchtriage.evidence import flight_recorder, fr_trace, nccl_ras, stacks
from torchtriage.evidence.collective_vocabulary import CollectiveVocabulary
from torchtriage.evidence.flight_recorder import newest_of_each_rank, read_dump, times_of
from torchtriage.evidence.rank_states import states_of
from torchtriage.evidence.reports.readers import MAX_BYTES, READERS
from torchtriage.evidence.stacks import doing, hang_of_stacks, hang_of_unranked_stacks, is_stack_alone, read_stacks
from torchtriage.evidence.wait_for import hang_of
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.file_types import HEAD, FileForm, form_of, is_report
from torchtriage.reading.omission_notice import omission_reason
from torchtriage.reading.pickled_dumps import is_pickle
from torchtriage.reading.sources import LogFile
from torchtriage.reading.whole_files import NotRead, whole

_NO_DUMP = "a pickle, but no dump of the flight recorder"
MAX_SOURCES = 4096  # files that a verdict lists
_RANK = lazy_regex(r"(?i)rank[_.-]?(\d{1,6})(?!.*rank[_.-]?\d)")
_NUMBER = lazy_regex(r"(\d{1,6})(?!.*\d)")  # the last number in a name
_MAX_BARE_RANK = 4096  # a larger number without the word "rank" is a process id
_MAX_DUMPS = 65_536


class CollectedEvidence:
    """The evidence of one run. Its files are passed one after another."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._dumps: dict[int, RankDump] = {}
        self._stacks: list[RankStack] = []
        self._reports: list[nccl_ras.Report] = []
        self._traced: list[fr_trace.MismatchRow] = []

    def log_of(self, file: LogFile, position: int, name: str | None, host: str | None = None) -> LogFile | None:
        """Returns the file if it is a log or the report of a tool. Returns None if it was other evidence, which is read
        at once. `position` is its index in the run, `name` its name in the verdict, `host` the host in its path.

        Raises NotRead for evidence that cannot be read, and UnreadableLog for bytes that cannot be read.
        """
        if file.unread is not None:
            self._list(Source(name, FileForm.UNREAD, note=file.unread))
            return None
        chunks = file.chunks()
        head = b""
        while len(head) < HEAD and (more := next(chunks, b"")):
            head += more
        reason = omission_reason(head) or (_NO_DUMP if is_pickle(head) else None)
        if reason is not None:
            self._list(Source(name, FileForm.UNREAD, note=reason))
            raise NotRead(reason)
        form, every = form_of(head), chain((head,) if head else (), chunks)
        rank = rank_in_name(file.name)
        if form is FileForm.FLIGHT_RECORDER:
            self._take(name, form, lambda: self._dump(every, name, position, rank, host))
        elif form in (FileForm.PY_SPY, FileForm.RANK_STACKS):
            self._take(name, form, lambda: self._stack(whole(every, stacks.MAX_BYTES), name, position, rank))
        elif form is FileForm.FAULTHANDLER:
            return self._log_with_stack(file, every, name, position, rank)
        elif form is FileForm.NCCL_RAS:
            return self._log_with_report(file, every, name, position)
        elif form is FileForm.FR_TRACE:
            return self._log_or_trace(file, every, name, position)
        elif form in READERS:
            return self._report_of_tool(file, form, every, name, position)
        else:
            self._list(Source(name, form, rank if form is FileForm.ERROR_FILE else None))
            return replace(file, chunks=lambda: every, form=form)
        return None

    def _report_of_tool(
        self, file: LogFile, form: FileForm, chunks: Iterator[bytes], name: str | None, position: int
    ) -> LogFile:
        """Returns the file with its form. It is a log if a log follows a tool's output at its start."""
        head = next(chunks, b"")
        begin = head
        while len(begin) < MAX_BYTES and (more := next(chunks, b"")):
            begin += more
        every = chain((begin,), chunks)
        if len(begin) >= MAX_BYTES or not is_report(form, begin):
            self._list(Source(name, FileForm.LOG))
            return replace(file, chunks=lambda: every)
        rank = rank_in_name(file.name) if form is FileForm.NATIVE_STACKS else None
        if form is FileForm.NATIVE_STACKS:
            with suppress(NotRead):  # cuda-gdb's output about a kernel has no host thread
                rank = self._stack(begin, name, position, rank)
        self._list(Source(name, form, rank))
        return replace(file, chunks=lambda: every, form=form)

    def evidence(self, world_size: int | None, words: CollectiveVocabulary) -> RunEvidence:
        """Returns the evidence of all files. `world_size` is the number of ranks in the log, if known."""
        if not (self._dumps or self._stacks or self._reports or self._traced):
            return RunEvidence(tuple(self._sources))
        by_rank = {stack.rank: stack for stack in self._stacks if stack.rank is not None}
        standing = {rank: doing(stack) for rank, stack in by_rank.items()}
        hang = hang_of(self._dumps, words, world_size, standing)
        if hang is None or (not hang.suspects and hang.kind in ("together", "crossed")):
            hang = hang_of_stacks(by_rank, hang, words) or hang
        if hang is None and not by_rank:
            hang = hang_of_unranked_stacks(self._stacks, words)
        if hang is None or not hang.suspects:
            hang = fr_trace.hang_of_trace(self._traced, words) or hang
        if hang is None or not hang.suspects:
            hang = nccl_ras.hang_of_reports(self._reports) or hang
        if hang is not None:
            hang = _with_stacks(hang, by_rank)
            if not hang.states:
                hang = replace(hang, states=states_of(hang, {}, lambda _: False, (), standing))
        known, reported = self._world_size(), bool(self._reports or self._traced)
        lost = (
            frozenset(range(max((world_size or 0, known or 0, *(rank + 1 for rank in self._dumps)))))
            - self._dumps.keys()
        )
        return RunEvidence(
            tuple(self._sources), frozenset(self._dumps), hang, len(by_rank), reported, known,
            lost if len(lost) <= len(self._dumps) else frozenset(), tuple(map(times_of, self._dumps.values())),
        )  # fmt: skip

    def _world_size(self) -> int | None:
        """Returns the size of the largest group that contains rank 0 and all ranks up to its last one, or the number of
        GPUs in a report."""
        groups = (view.members for dump in self._dumps.values() for view in dump.groups.values())
        sizes = [len(ranks) for ranks in groups if ranks and set(ranks) == set(range(len(ranks)))]
        return max([*sizes, *(report.gpus for report in self._reports[-1:] if report.gpus)], default=None)

    def _take(self, name: str | None, form: FileForm, read: Callable[[], int | None]) -> None:
        try:
            self._list(Source(name, form, read()))
        except NotRead as reason:
            self._list(Source(name, FileForm.UNREAD, note=f"{form}: {reason}"))
            raise

    def refuse(self, reason: str) -> None:
        """Marks the last file that was returned as a log as unread: the bytes after its start cannot be read."""
        if self._sources and len(self._sources) < MAX_SOURCES:
            self._sources[-1] = Source(self._sources[-1].file, FileForm.UNREAD, note=reason)

    def _list(self, source: Source) -> None:
        if len(self._sources) < MAX_SOURCES:
            self._sources.append(source)

    def _dump(
        self, chunks: Iterator[bytes], name: str | None, position: int, rank: int | None, host: str | None
    ) -> int:
        dump = read_dump(whole(chunks, flight_recorder.MAX_BYTES), name, position, rank, host)
        if len(self._dumps) >= _MAX_DUMPS and dump.rank not in self._dumps:
            raise NotRead(f"more than {_MAX_DUMPS:,} dumps")
        known = [self._dumps[dump.rank]] if dump.rank in self._dumps else []
        self._dumps |= newest_of_each_rank([*known, dump])
        return dump.rank

    def _stack(self, data: bytes, name: str | None, position: int, rank: int | None) -> int | None:
        stacks = read_stacks(data, name, position, rank)
        self._stacks += stacks[: _MAX_DUMPS - len(self._stacks)]
        return stacks[0].rank if len(stacks) == 1 else None

    def _log_with_stack(
        self, file: LogFile, chunks: Iterator[bytes], name: str | None, position: int, rank: int | None
    ) -> LogFile | None:
        """Returns the file as a log if it contains more than the stacks at its start, else None."""
        begin = b""
        while len(begin) < stacks.MAX_BYTES and (more := next(chunks, b"")):
            begin += more
        rank = self._stack(begin[: stacks.MAX_BYTES], name, position, rank)
        self._list(Source(name, FileForm.FAULTHANDLER, rank))
        rest = chain((begin,), chunks)
        return None if is_stack_alone(begin) else replace(file, chunks=lambda: rest)

    def _log_or_trace(self, file: LogFile, chunks: Iterator[bytes], name: str | None, position: int) -> LogFile | None:
        """Returns the file as a log if it contains more than the output of torchfrtrace, else None."""
        begin = b""
        while len(begin) < fr_trace.MAX_BYTES and (more := next(chunks, b"")):
            begin += more
        every = chain((begin,), chunks)
        try:
            if len(begin) >= fr_trace.MAX_BYTES:
                raise NotRead("too large")
            found = fr_trace.read_trace(begin, name, position)
        except NotRead:
            self._list(Source(name, FileForm.LOG))
            return replace(file, chunks=lambda: every)
        self._traced += found
        self._list(Source(name, FileForm.FR_TRACE))
        return None

    def _log_with_report(
        self, file: LogFile, chunks: Iterator[bytes], name: str | None, position: int
    ) -> LogFile | None:
        """Returns the file as a log if it contains more than reports of NCCL's RAS service, else None."""
        kept: list[bytes] = []
        self._take(name, FileForm.NCCL_RAS, lambda: self._report(chunks, name, position, kept))
        data = kept[0]
        return None if nccl_ras.is_report_alone(data) else replace(file, chunks=lambda: iter((data,)))

    def _report(self, chunks: Iterator[bytes], name: str | None, position: int, kept: list[bytes]) -> None:
        """Reads the reports of a file. Adds its bytes to `kept`."""
        kept.append(whole(chunks, nccl_ras.MAX_BYTES))
        self._reports += nccl_ras.read_reports(kept[0], name, position)


def rank_in_name(name: str) -> int | None:
    """Returns the rank in a file's name, such as `nccl_trace_rank_3`, `_dump_12` or `rank3/stack.txt`, or None."""
    found = _RANK.search(name)
    if found:
        return int(found[1])
    bare = _NUMBER.search(PurePosixPath(name).name.split(".json")[0].split(".txt")[0])
    return int(bare[1]) if bare and int(bare[1]) < _MAX_BARE_RANK else None


def _with_stacks(hang: Hang, by_rank: dict[int, RankStack]) -> Hang:
    """Returns the hang with the place in the code of the first suspect that has a stack."""
    stack = next((by_rank[rank] for rank in hang.suspects if rank in by_rank), None)
    if stack is None or hang.doing:
        return hang
    return replace(hang, doing=doing(stack), lines=(*hang.lines, stack.line))
