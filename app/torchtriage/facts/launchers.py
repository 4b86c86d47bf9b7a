"""How a run was launched: where a launch begins, its launcher, its workers and their exit status. Texts in, facts out."""

from __future__ import annotations

import re

from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts.sign import Shown, Sign, signs_by_name

WORLD = Sign(
    r"(?i)\b(?:dist_|global_)?world[_ ]?size['\"]?\s?[=:]\s?(\d{1,6})\b|distributed init \(rank \d+, world (\d+)\)"
    r"|MEMBER: \d+/(\d{1,6})|Starting with (\d{1,6}) processes|\bNum processes: (\d{1,6})|completed store-based barrier for .{1,80} with (\d{1,6}) nodes"
)
EXIT = Sign(
    r"(?i)\bexit(?:ed|s|ing)? (?:with )?(?:exit |return |status |error )?(?:code|status)\s?[:=]?\s?(-?\d{1,3})\b"
    r"|\bexit[_ ]?code['\"]?\s?[:=]\s?['\"]?(-?\d{1,3})\b|returned non-zero exit status (\d{1,3})\b|returned? (?:code|status) ?[:=] ?(-?\d{1,3})\b"
)
SIGNS = (WORLD, EXIT)
_LONGEST_START = 400  # characters of a line with which a launch begins


class LauncherSigns:
    """By what words each launcher is known, the outer ones, which a person typed, before those that they use; and how
    a launch begins and ends. `start_words`: of these each line that begins a launch holds one. `frames` finds the
    files of launchers' own code, `commands` start the workers of a host, with `exceptions` (the ends of their names) a
    launch is over."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.start_words = vocabulary.words("launch-start-words")
        self.commands = vocabulary.words("launch-commands")
        self.exceptions = vocabulary.words("launcher-exceptions")
        self.frames = re.compile(vocabulary.regex("launcher-frames"))
        starts = vocabulary.patterns("launch-starts")
        self._begins = re.compile("|".join(item.exact for item in starts))
        self._begins_anew = re.compile("|".join(item.exact for item in starts if item.name == "anew"))
        self.by_name = signs_by_name(vocabulary.patterns("launchers"))
        self._order = {name: place for place, name in enumerate(self.by_name)}

    def begins(self, text: str) -> bool:
        """-> whether a launch begins with this line."""
        return bool(self._begins.search(text[:_LONGEST_START]))

    def begins_anew(self, text: str) -> bool:
        """-> whether a launch begins with this line even where the one above is not seen to end."""
        return bool(self._begins_anew.search(text[:_LONGEST_START]))

    def outermost(self, shown: Shown) -> str | None:
        """-> the outermost launcher that a line shows."""
        return next((name for name, sign in self.by_name.items() if sign in shown), None)

    def outer(self, first: str | None, second: str | None) -> str | None:
        """-> of two launchers the one that starts the other."""
        return min((name for name in (first, second) if name), key=self._order.__getitem__, default=None)


def world_size(text: str, shown: Shown) -> int | None:
    """-> the number of workers that a line tells."""
    found = WORLD.regex.search(text) if WORLD in shown else None
    return int(next(part for part in found.groups() if part)) or None if found else None


def exit_code(text: str, shown: Shown) -> int | None:
    """-> the exit status that a line speaks of, where it is not 0."""
    found = EXIT.regex.search(text) if EXIT in shown else None
    return int(next(part for part in found.groups() if part)) or None if found else None
