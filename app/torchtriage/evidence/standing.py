"""Stacks of many ranks in, the few that stand elsewhere than in a collective out."""

from __future__ import annotations

from collections.abc import Mapping

from torchtriage.domain.evidence import Hang, RankStack, StackLine
from torchtriage.evidence.collective_words import CollectiveWords
from torchtriage.evidence.flight_recorder import is_library

_MOST_LINES = 6  # of stacks that are shown
_FEWEST = 2  # stacks that can be compared


def elsewhere(stacks: Mapping[int, RankStack], dumped: Hang | None, words: CollectiveWords) -> Hang | None:
    """-> the hang that the stacks show: most ranks wait in a collective, few do not. None where they do not tell.
    `dumped` is what the dumps show of it, whose collective is the one that is waited in."""
    waiting = [rank for rank, stack in stacks.items() if any(words.stands_in(_name(frame)) for frame in stack.frames)]
    few = sorted(stacks.keys() - set(waiting))
    if len(stacks) < _FEWEST or not few or len(few) >= len(waiting):
        return None
    call, group = (dumped.call, dumped.group) if dumped else (None, "")
    shown = [stacks[few[0]].line, *(stacks[rank].line for rank in sorted(waiting)), *(dumped.lines if dumped else ())]
    return Hang(
        "elsewhere",
        tuple(few),
        tuple(sorted(waiting)),
        call,
        group,
        tuple(shown[:_MOST_LINES]),
        doing=doing(stacks[few[0]]),
    )


def doing(stack: RankStack) -> str:
    """-> where it stood: the innermost frame, and the user's that called it."""
    own = next((frame for frame in stack.frames if not is_library(frame.file)), None)
    inner = stack.frames[0]
    return _shown(inner) if own is None or own is inner else f"{_shown(inner)}, called by {_shown(own)}"


def _name(frame: StackLine) -> str:
    return f"{frame.file}:{frame.function}"


def _shown(frame: StackLine) -> str:
    return f"{frame.function} ({frame.file.rpartition('/')[2]}:{frame.line})"[:120]
