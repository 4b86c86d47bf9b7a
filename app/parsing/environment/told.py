"""What one line's text tells of a run, wherever it stands: text in, facts out, found in one pass over all signs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import re2

from app.parsing.environment import hosts, launchers, progress, versions
from app.parsing.environment.kinship import FIELD, FOREIGN
from app.parsing.environment.signs import Shown
from app.parsing.environment.versions import Bounds

_SIGNS = [*launchers.SIGNS, *versions.SIGNS, *progress.SIGNS, *hosts.SIGNS, FOREIGN, FIELD]


def _all_at_once() -> re2.Set:
    signs = re2.Set.SearchSet()
    for sign in _SIGNS:
        # It only points: RE2 knows no look-around, and long repeats would need much memory.
        signs.Add(re.sub(r"\(\?<?[!=][^)]*\)", "", re.sub(r"\{0,\d+\}", "*", sign.pattern)))
    signs.Compile()
    return signs


_QUICK = _all_at_once()
# Of these the text around them says more.
_READ = frozenset((launchers.WORLD, launchers.EXIT, *versions.PRINTED, FOREIGN, *hosts.SIGNS))


class Told(NamedTuple):
    """What one line's text tells, wherever it stands. Ranks print the same lines, so this is kept per text."""

    launcher: str | None = None
    world_size: int | None = None
    exit_code: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    bounds: Bounds = (None, None)
    phase: str | None = None
    progress: bool = False
    step: int | None = None
    writer: int | None = None
    well: bool = False
    wound_up: bool = False
    joined: bool = False
    foreign: bool = False
    of_field: bool = False
    hosts: tuple[str, ...] = ()
    placed: tuple[tuple[int, str], ...] = ()  # ranks and their hosts


NOTHING = Told()


def shown_by(text: str) -> Shown:
    """-> of all signs those that a text shows, in one pass; that takes a tenth of the time of one search for each."""
    return _of_signs(tuple(_QUICK.Match(text.encode("utf-8", "replace")) or ()))[0]


@lru_cache(maxsize=1024)
def _of_signs(indexes: tuple[int, ...]) -> tuple[Shown, Told]:
    """-> signs, and what they tell whatever else stands in the text. Most lines of a log show the same ones."""
    shown = frozenset(_SIGNS[index] for index in indexes)
    told = Told(
        launcher=launchers.launcher(shown),
        bounds=versions.bounds(shown),
        phase=progress.phase(shown),
        well=progress.WELL in shown,
        wound_up=progress.WOUND_UP in shown,
        joined=progress.JOINED in shown,
        of_field=FIELD in shown,
    )
    return shown, told if shown else NOTHING


@lru_cache(maxsize=4096)
def labelled(start: str) -> Bounds:
    """-> the torch versions that the label at the start of a line leaves open."""
    return versions.bounds(shown_by(start))


@lru_cache(maxsize=4096)
def told_by(text: str) -> Told:
    """-> what the text of a line tells."""
    shown, told = _of_signs(tuple(_QUICK.Match(text.encode("utf-8", "replace")) or ()))
    if progress.PROGRESS in shown and progress.progressed(text, shown):
        told = told._replace(progress=True, step=progress.step(text), writer=progress.writer(text))
    if not shown.isdisjoint(_READ):
        told = told._replace(
            world_size=launchers.world_size(text, shown),
            exit_code=launchers.exit_code(text, shown),
            versions=versions.printed(text, shown),
            foreign=FOREIGN in shown and bool(FOREIGN.regex.search(text)),
            hosts=hosts.named(text, shown),
            placed=hosts.placed(text, shown),
        )
    return told
