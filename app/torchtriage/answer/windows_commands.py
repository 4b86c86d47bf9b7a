"""Writes the shell commands of an answer for PowerShell, if the run was on Windows. The rows of the vocabulary list
`windows-commands` say how."""

from __future__ import annotations

from dataclasses import replace

from torchtriage.answer.shell_prompt import is_shell_command
from torchtriage.domain.verdict import Answer
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.linear_regex import linear_regex

WINDOWS_COMMANDS = "windows-commands"  # the name of a list in the vocabulary
_BECOMES = "becomes"
_MAX_TIMES = 8  # how often a row is applied to one command


def for_operating_system(answer: Answer, vocabulary: Vocabulary) -> Answer:
    """Returns the answer with its commands as the run's operating system has them. A step whose command Windows does
    not have is shown without it."""
    if "operating_system" not in answer.values:
        return answer
    steps = (replace(step, run=windows_command(step.run, vocabulary) if step.run else None) for step in answer.steps)
    return replace(answer, steps=tuple(steps))


def windows_command(run: str, vocabulary: Vocabulary) -> str | None:
    """Returns what a step shows, as it is written on Windows: a shell command for PowerShell, other code as it is.
    Returns None if Windows has no such command."""
    if not is_shell_command(run):
        return run
    for row in vocabulary.patterns(WINDOWS_COMMANDS):
        becomes = dict(row.tells).get(_BECOMES)
        if becomes is None and linear_regex(row.regex).search(run):
            return None
        for _ in range(_MAX_TIMES if becomes is not None else 0):
            before, run = run, linear_regex(row.regex).sub(becomes, run)
            if run == before:
                break
    return run
