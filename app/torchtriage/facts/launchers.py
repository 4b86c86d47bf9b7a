"""Recognizes how a run was launched: where a launch starts, its launcher, number of workers and exit status."""

from __future__ import annotations

import re

from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts.scan_regex import MatchedRegexes, ScanRegex, regexes_by_name

WORLD = ScanRegex(
    r"(?i)\b(?:dist_|global_)?world[_ ]?size['\"]?\s?[=:]\s?(\d{1,6})\b|distributed init \(rank \d+, world (\d+)\)"
    r"|MEMBER: \d+/(\d{1,6})|Starting with (\d{1,6}) processes|\bNum processes: (\d{1,6})|completed store-based barrier for .{1,80} with (\d{1,6}) nodes"
)
EXIT = ScanRegex(
    r"(?i)\bexit(?:ed|s|ing)? (?:with )?(?:exit |return |status |error )?(?:code|status)\s?[:=]?\s?(-?\d{1,3})\b"
    r"|\bexit[_ ]?code['\"]?\s?[:=]\s?['\"]?(-?\d{1,3})\b|returned non-zero exit status (\d{1,3})\b|returned? (?:code|status) ?[:=] ?(-?\d{1,3})\b"
)
REGEXES = (WORLD, EXIT)
_MAX_START_LENGTH = 400  # characters of a line that starts a launch


class LauncherRegexes:
    """The words by which launchers are recognized, and the lines with which a launch starts and ends. Outer launchers,
    which a person types, come before those that they use. Each line that starts a launch contains one of `start_words`.
    `frames` matches the files of launchers' own code. `commands` start the workers of a host. A launch is over after
    one of `exceptions` (ends of their names)."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.start_words = vocabulary.words("launch-start-words")
        self.commands = vocabulary.words("launch-commands")
        self.exceptions = vocabulary.words("launcher-exceptions")
        self.frames = re.compile(vocabulary.regex("launcher-frames"))
        starts = vocabulary.patterns("launch-starts")
        self._begins = re.compile("|".join(item.exact for item in starts))
        self._restarts = re.compile("|".join(item.exact for item in starts if item.name == "anew"))
        self.by_name = regexes_by_name(vocabulary.patterns("launchers"))
        self._order = {name: place for place, name in enumerate(self.by_name)}

    def begins(self, text: str) -> bool:
        """Returns whether a launch starts with this line."""
        return bool(self._begins.search(text[:_MAX_START_LENGTH]))

    def restarts(self, text: str) -> bool:
        """Returns whether a new launch starts with this line even if the previous one did not visibly end."""
        return bool(self._restarts.search(text[:_MAX_START_LENGTH]))

    def outermost(self, matched: MatchedRegexes) -> str | None:
        """Returns the outermost launcher that a line shows, or None."""
        return next((name for name, regex in self.by_name.items() if regex in matched), None)

    def outer(self, first: str | None, second: str | None) -> str | None:
        """Returns the launcher that starts the other one."""
        return min((name for name in (first, second) if name), key=self._order.__getitem__, default=None)


def world_size(text: str, matched: MatchedRegexes) -> int | None:
    """Returns the number of workers in a line, or None."""
    found = WORLD.compiled.search(text) if WORLD in matched else None
    return int(next(part for part in found.groups() if part)) or None if found else None


def exit_code(text: str, matched: MatchedRegexes) -> int | None:
    """Returns the exit status in a line if it is not 0, else None. A number above 255 is no status of a job, but the wait
    status of a tool that a library ran, as in `ptxas exited with non-zero error code 256`."""
    found = EXIT.compiled.search(text) if EXIT in matched else None
    status = int(next(part for part in found.groups() if part)) if found else 0
    return status if status and status <= 255 else None
