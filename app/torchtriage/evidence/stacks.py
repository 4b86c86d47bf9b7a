"""Reads stacks of processes, as printed by py-spy (text or JSON), Python's faulthandler and gdb. Finds the place of
each process, and the few ranks that are not in a collective."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from torchtriage.domain.evidence import Hang, RankStack, StackLine
from torchtriage.domain.line import Line, Position
from torchtriage.evidence.collective_vocabulary import CollectiveVocabulary
from torchtriage.evidence.flight_recorder import is_library
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.whole_files import NotRead

MAX_BYTES = 4 << 20
_MAX_OPENED = 200_000  # lists and objects in JSON
_MAX_FRAMES = 200  # frames of a stack
_MAX_LINES = 6  # lines of stacks that are shown
_MIN_COUNT = 2  # stacks that are needed for a comparison
_MAIN = "MainThread"
_SCRIPT = "<module>"  # the function name of a script's top-level code, in the stack of the thread that runs it
# Thread 4711 (idle): "MainThread" · Thread 0x7F5C (active+gil)
_PY_SPY_THREAD = lazy_regex(r'Thread (?:0x)?[0-9A-Fa-f]{1,16} \([^)]{1,40}\)(?:: "([^"]{0,200})")?')
#     wait (threading.py:327)
_PY_SPY_FRAME = lazy_regex(r"\s{2,8}(\S.{0,200}?) \((.{1,300}?)(?::(\d{1,9}))?\)\s*$")
# Current thread 0x00007f5c (most recent call first): · Thread 0x00007f5d [pt_autograd_0] (most recent call first):
_FAULT_THREAD = lazy_regex(r"(?:Current thread|Thread) 0x[0-9a-f]{1,16}.{0,60} \(most recent call first\):")
#   File "/job/train.py", line 30 in <module>
_FAULT_FRAME = lazy_regex(r'\s{2}File "(.{1,500})", line (\d{1,9}) in (.{1,200})$')
# Thread 1 (Thread 0x7f794ffa5740 (LWP 1400) "python"): · Thread 1 (LWP 1400):
_GDB_THREAD = lazy_regex(r"Thread (\d{1,6}) \((?:Thread 0x[0-9a-f]{1,16} \()?LWP \d{1,9}[^\n]{0,80}\):?\s*$")
# #1  0x00007f78f42ff793 in c10d::Work::wait (this=0x5) at /pytorch/csrc/Work.cpp:12 · … () from /usr/lib/libcuda.so.1
_GDB_FRAME = lazy_regex(
    r"#\d{1,4} +(?:0x[0-9a-f]{1,16} in )?(\S.{0,400}?) ?\((.{0,4000})\)"
    r"(?: (?:at|from) (\S{1,500}?)(?::(\d{1,9}))?)?\s*$"
)
# py-bt of gdb's Python extension · a frame of the interpreter that names the Python line
_PY_BT = lazy_regex(r'\s{2}File "(.{1,500})", line (\d{1,9}), in (.{1,200})$')
_RUNS = lazy_regex(r"Frame 0x[0-9a-f]{1,16}, for file ([^,\n]{1,500}), line (\d{1,9}), in (\w{1,200})")
_NATIVE = lazy_regex(r"^$|\.(?:so(?:\.[\d.]+)?|c|cc|cpp|cxx|cu|h|hpp|S)$")  # files of frames that are not Python
# ./nptl/sem_waitcommon.c:do_futex_wait · ./nptl/sem_wait.c:__new_sem_wait · libc.so.6:0x7f9bf0a4cf16
_LIBC = lazy_regex(r":(?:0x|\w*futex|\w*_sem_)\w*$")
_NATIVE_MAIN = "1"  # gdb numbers threads from the newest down to the first one of the process
# === Rank 0: http://gpu-021:41233 ===
_RANK = lazy_regex(r"(?m)^=== Rank (\d{1,6}): \S{1,300} ===\s*$")
# Process 4711: /usr/bin/python -u train.py --fsdp / Python v3.11.7 (/usr/bin/python3.11)
_PROCESS = lazy_regex(r"(?m)^Process (\d{1,9}): ([^\n]{0,4000})\nPython v\d")
# Timeout (0:05:00)! · ... · Garbage-collecting; `Extension modules:` follows only a dump after which a signal ended the
# process, so a file with this line is read as a log.
_BESIDE = lazy_regex(r"Timeout \([\d:.]{1,20}\)!$|\s*\.\.\.$|\s*<no Python frame>$|\s{2}Garbage-collecting$")


class _Thread(NamedTuple):
    name: str | None
    line: int
    text: str
    frames: list[StackLine]


def read_stacks(data: bytes, file: str | None, position: int, rank: int | None) -> list[RankStack]:
    """Returns the stacks of a file: of one process, which is `rank`; of the ranks in its headings; or of several
    processes without ranks. Raises NotRead if there are none."""
    text = data.decode("utf-8", "replace")
    ranks, processes = list(_RANK.finditer(text)), list(_PROCESS.finditer(text))
    if not ranks and len(processes) <= 1:
        return [read_stack(data, file, position, rank)]
    heads = ranks or processes
    found: list[RankStack] = []
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        part = text[head.start() : after.start() if after else len(text)]
        with suppress(NotRead):  # a rank that did not respond has no stack
            stack = read_stack(part.encode(), file, position, int(head[1]) if ranks else None)
            number = stack.line.number + text.count("\n", 0, head.start())
            line = stack.line._replace(number=number, position=Position(position, number))
            found.append(replace(stack, line=line, process=None if ranks else int(head[1])))
    if not found:
        raise NotRead("no stack in it")
    return found if ranks else _largest_command_group(found, {int(one[1]): one[2] for one in processes})


def _largest_command_group(stacks: list[RankStack], commands: Mapping[int, str]) -> list[RankStack]:
    """Returns the stacks of the command that most processes run. Ranks run the same command, but other processes may
    have been dumped too."""
    most = Counter(commands[stack.process or 0] for stack in stacks).most_common(1)[0][0]
    return [stack for stack in stacks if commands[stack.process or 0] == most]


def read_stack(data: bytes, file: str | None, position: int, rank: int | None) -> RankStack:
    """Returns the place of the main thread. Raises NotRead if no thread has a frame."""
    threads = [thread for thread in _threads(data) if thread.frames]
    if not threads:
        raise NotRead("no stack in it")
    main = next((one for one in threads if one.name in (_MAIN, _NATIVE_MAIN)), None)
    main = main or next((one for one in threads if any(frame.function == _SCRIPT for frame in one.frames)), threads[0])
    line = Line(main.line, main.text, main.text, Position(position, main.line), file, rank)
    return RankStack(rank, file, position, tuple(main.frames[:_MAX_FRAMES]), line)


def is_stack_alone(data: bytes) -> bool:
    """Returns whether a file contains only stacks of faulthandler, so it is not a log."""
    lines = (text for text in data.decode("utf-8", "replace").split("\n") if text.strip())
    return all(_FAULT_THREAD.match(text) or _FAULT_FRAME.match(text) or _BESIDE.match(text) for text in lines)


def _threads(data: bytes) -> Iterator[_Thread]:
    begin = data[:200].lstrip()
    if begin[:1] == b"[" and begin[1:].lstrip()[:1] in (b"{", b"]"):
        yield from _of_json(data)
        return
    open_: _Thread | None = None
    for number, text in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if head := _GDB_THREAD.match(text) or _PY_SPY_THREAD.match(text) or _FAULT_THREAD.match(text):
            if open_ is not None:
                yield open_
            open_ = _Thread(head[1] if head.re.groups else None, number, text, [])
        elif open_ is not None and (frame := _frame(text)) is not None:
            if not open_.frames:
                open_ = open_._replace(line=number, text=text)
            open_.frames.append(frame)
    if open_ is not None:
        yield open_


def _frame(text: str) -> StackLine | None:
    if found := _FAULT_FRAME.match(text):
        return StackLine(found[1], int(found[2]), found[3])
    if text[:1] == "#" or text[:6] == "  File":
        return _native_frame(text)
    found = _PY_SPY_FRAME.match(text)
    return StackLine(found[2], int(found[3] or 0), found[1]) if found else None


def _native_frame(text: str) -> StackLine | None:
    """Returns a frame of gdb. For a frame of the interpreter, returns the Python line if the debugger shows it."""
    if python := _PY_BT.match(text) or _RUNS.search(text):
        return StackLine(python[1], int(python[2]), python[3])
    found = _GDB_FRAME.match(text)
    if found is None:
        return None
    return StackLine(found[3] or "", int(found[4] or 0), found[1].strip()[:200])


def _of_json(data: bytes) -> Iterator[_Thread]:
    if data.count(b"[") + data.count(b"{") > _MAX_OPENED:
        raise NotRead(f"more than {_MAX_OPENED:,} lists")
    try:
        threads = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotRead("incomplete JSON") from error
    for thread in threads if isinstance(threads, list) else ():
        if isinstance(thread, dict) and isinstance(thread.get("frames"), list):
            frames = [_json_frame(frame) for frame in thread["frames"] if isinstance(frame, dict)]
            shown = f"{frames[0].function} ({frames[0].file}:{frames[0].line})" if frames else ""
            yield _Thread(str(thread.get("thread_name")), 1, shown, frames)


def _json_frame(frame: dict[str, Any]) -> StackLine:
    line = frame.get("line")
    return StackLine(
        str(frame.get("filename", ""))[:500], line if isinstance(line, int) else 0, str(frame.get("name", ""))[:200]
    )


def hang_of_stacks(stacks: Mapping[int, RankStack], dumped: Hang | None, words: CollectiveVocabulary) -> Hang | None:
    """Returns the hang in which most ranks wait in a collective and few do not, or None if the stacks do not show one.
    `dumped` is the hang in the dumps; its collective is the one that the ranks wait in."""
    waiting = [
        rank for rank, stack in stacks.items() if any(words.waits_in_collective(_name(frame)) for frame in stack.frames)
    ]
    few = sorted(stacks.keys() - set(waiting))
    one_of_two = len(stacks) == _MIN_COUNT and dumped is None
    if len(stacks) < _MIN_COUNT or not few or len(few) >= len(waiting) + one_of_two:
        waiting, few = _waiting_at_same_place(stacks, waiting, words)
        if not few:
            return None
    call, group = (dumped.call, dumped.group) if dumped else (None, "")
    shown = [stacks[few[0]].line, *(stacks[rank].line for rank in sorted(waiting)), *(dumped.lines if dumped else ())]
    return Hang(
        "elsewhere",
        tuple(few),
        tuple(sorted(waiting)),
        call,
        group,
        tuple(shown[:_MAX_LINES]),
        doing=doing(stacks[few[0]]),
    )


def hang_of_unranked_stacks(stacks: Iterable[RankStack], words: CollectiveVocabulary) -> Hang | None:
    """Does the same for processes without known ranks."""
    ranks = [stack for stack in stacks if not any(words.is_helper_process(_name(frame)) for frame in stack.frames)]
    found = hang_of_stacks({stack.process: stack for stack in ranks if stack.process is not None}, None, words)
    if found is None or len(ranks) <= _MIN_COUNT:
        return None
    who = f"Process{'es' if len(found.suspects) > 1 else ''} {', '.join(map(str, found.suspects))}"
    report = f"stacks: {who} elsewhere; waiting {len(found.waiting)}; stack {found.doing}"
    return replace(found, suspects=(), waiting=(), report=report)


def _waiting_at_same_place(
    stacks: Mapping[int, RankStack], in_collectives: list[int], words: CollectiveVocabulary
) -> tuple[list[int], list[int]]:
    """Returns the ranks that are all at one place where they may wait for others, such as the backward pass, and the
    ranks that wait nowhere if these are fewer. Two ranks are not enough to decide which one is at fault. A rank that
    waits in a collective may wait for one that seems to be at the usual place."""
    places: dict[tuple[StackLine, ...], list[int]] = {}
    for rank, stack in stacks.items():
        if rank in in_collectives or any(words.may_wait_for_ranks(_name(frame)) for frame in stack.frames):
            places.setdefault(stack.frames, []).append(rank)
    most = max(places.values(), key=len, default=[])
    few = sorted(stacks.keys() - {rank for ranks in places.values() for rank in ranks})
    return (most, few) if len(stacks) > _MIN_COUNT and 0 < len(few) < len(most) else ([], [])


def doing(stack: RankStack) -> str:
    """Returns the place of a stack: the innermost frame that is not a wait in the C library, and the user's frame above
    it."""
    python = (frame for frame in stack.frames if not _NATIVE.search(frame.file))
    own = next((frame for frame in python if not is_library(frame.file)), None)
    inner = next((frame for frame in stack.frames if not _is_inside_libc(frame)), stack.frames[0])
    return _shown(inner) if own is None or own is inner else f"{_shown(inner)}, called by {_shown(own)}"


def _is_inside_libc(frame: StackLine) -> bool:
    return _NATIVE.search(frame.file) is not None and _LIBC.search(_name(frame)) is not None


def _name(frame: StackLine) -> str:
    return f"{frame.file}:{frame.function}"


def _shown(frame: StackLine) -> str:
    file = frame.file.rpartition("/")[2]
    return f"{frame.function} ({file}:{frame.line})"[:120] if frame.line else f"{frame.function} ({file})"[:120]
