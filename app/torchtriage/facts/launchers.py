"""The launcher, the number of workers and their exit status: texts in, facts out."""

from __future__ import annotations

from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.facts.patterns import Shown, Sign, signs_by_name

WORLD = Sign(
    r"(?i)\b(?:dist_|global_)?world[_ ]?size['\"]?\s?[=:]\s?(\d{1,6})\b|distributed init \(rank \d+, world (\d+)\)"
    r"|MEMBER: \d+/(\d{1,6})|Starting with (\d{1,6}) processes|\bNum processes: (\d{1,6})|completed store-based barrier for .{1,80} with (\d{1,6}) nodes"
)
EXIT = Sign(
    r"(?i)\bexit(?:ed|s|ing)? (?:with )?(?:exit |return |status |error )?(?:code|status)\s?[:=]?\s?(-?\d{1,3})\b"
    r"|\bexit[_ ]?code['\"]?\s?[:=]\s?['\"]?(-?\d{1,3})\b|returned non-zero exit status (\d{1,3})\b|returned? (?:code|status) ?[:=] ?(-?\d{1,3})\b"
)
SIGNS = (WORLD, EXIT)


class LauncherSigns:
    """By what words each launcher is known, the outer ones, which a person typed, before those that they use."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.by_name = signs_by_name(vocabulary.patterns("launchers"))
        self._order = {name: place for place, name in enumerate(self.by_name)}

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
