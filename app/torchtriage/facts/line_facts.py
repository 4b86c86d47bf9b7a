"""What one line's text tells of a run, wherever it stands: text and the signs that it shows in, facts out."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torchtriage.domain.line import Line
from torchtriage.facts import hosts, launchers, progress, versions
from torchtriage.facts.line_origin import AROUND, DEVICES, FIELD, FOREIGN, HINTS, ON_GPUS
from torchtriage.facts.patterns import Shown
from torchtriage.facts.versions import Bounds

SIGNS = (*launchers.SIGNS, *versions.SIGNS, *progress.SIGNS, *hosts.SIGNS, *FOREIGN, AROUND, FIELD, DEVICES, *HINTS)
# Most lines of most logs show one of these, and once enough lines did, the others need not be looked at.
OF_FIELD = frozenset(map(SIGNS.index, (AROUND, FIELD, DEVICES, *HINTS)))
PATH = SIGNS.index(versions.PATH)
ENOUGH_OF_FIELD = 10  # lines that speak of training: a log with so many is of this field, whatever else stands in it
# Lines with these signs that tell all that they can.
ENOUGH = {SIGNS.index(FIELD): ENOUGH_OF_FIELD, SIGNS.index(DEVICES): ENOUGH_OF_FIELD, PATH: 1}
LONGEST = 2000  # characters of a text that are looked at
_START = 80  # characters
SURE = frozenset(number for number, sign in enumerate(SIGNS) if sign.is_pointed_at)
# Of these the text around them says more.
_READ = frozenset((launchers.WORLD, launchers.EXIT, *versions.PRINTED, *FOREIGN, *hosts.SIGNS))
_CERTAIN = 0b11 << len(HINTS)  # as much as two kinds of hints


class Told(NamedTuple):
    """What one line's text tells, wherever it stands."""

    launcher: str | None = None
    world_size: int | None = None
    exit_code: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    bounds: Bounds = (None, None)
    phase: str | None = None
    well: bool = False
    wound_up: bool = False
    joined: bool = False
    refused: bool = False
    serves: bool = False
    foreign: bool = False
    on_gpus: bool = False  # foreign, and of a program that uses GPUs
    of_field: bool = False
    of_devices: bool = False  # of the field by words of devices alone
    around: bool = False  # and no more
    kinds: int = 0  # a bit for each kind of word of this field
    hosts: tuple[str, ...] = ()
    placed: tuple[tuple[int, str], ...] = ()  # ranks and their hosts
    executed: tuple[str, ...] = ()  # hosts on which a batch system ran the job


class Form(NamedTuple):
    """What lines that show the same signs have in common. `told`: what they tell whatever else stands in them, where
    `is_read` is False that is all; `says_more`: it is more than that the line is of this field. `counts`: they can show
    progress, `surely`: whatever else stands in them. `passes`: they tell at most that the run goes on."""

    shown: Shown
    told: Told
    is_read: bool
    says_more: bool
    counts: bool
    surely: bool
    passes: bool


def start(line: Line) -> str:
    """-> the start of a line with its label, where the form of both tells the version; else nothing."""
    told = line.text[:1] in ("T", "[") or "Error: " in line.text or line.raw[:2] == "[2"
    if not told or line.raw.lstrip()[:1] != "[":
        return ""
    label, _, behind = line.raw[:_START].partition("]")
    numbered = label[:5] == "[rank" and label[5:].isdecimal()  # Ranks print the same behind it.
    return f"[rank0]{behind}" if numbered else line.raw[:_START]


def shown_by(text: str, pointed: tuple[int, ...]) -> tuple[int, ...]:
    """-> the numbers of the signs that a text shows, of those at which a scan with their pointers points."""
    whole = len(text) <= LONGEST
    if whole and SURE.issuperset(pointed):
        return pointed
    return tuple(at for at in pointed if (whole and at in SURE) or SIGNS[at].shows(text[:LONGEST]))


@lru_cache(maxsize=1024)
def form_of(numbers: tuple[int, ...]) -> Form:
    """-> the form of the lines that show these signs. Most lines of a log show the same ones."""
    shown = frozenset(SIGNS[number] for number in numbers)
    by_words = FIELD in shown or not shown.isdisjoint(HINTS)
    of_field = by_words or DEVICES in shown
    told = Told(
        launcher=launchers.launcher(shown),
        bounds=versions.bounds(shown),
        phase=progress.phase(shown),
        well=progress.WELL in shown,
        wound_up=progress.WOUND_UP in shown,
        joined=progress.JOINED in shown,
        refused=progress.REFUSED in shown,
        serves=progress.SERVES in shown,
        of_field=of_field,
        of_devices=of_field and not by_words,
        around=AROUND in shown and not of_field,
        kinds=sum(1 << kind for kind, hint in enumerate(HINTS) if hint in shown)
        | (0 if shown.isdisjoint((FIELD, DEVICES, AROUND)) else _CERTAIN),
    )
    is_read = not shown.isdisjoint(_READ)
    says_more = is_read or told != Told(
        of_field=told.of_field, of_devices=told.of_devices, around=told.around, kinds=told.kinds
    )
    counts, surely = progress.counts(shown)
    return Form(shown, told, is_read, says_more, counts, surely, not says_more and counts is surely)


@lru_cache(maxsize=4096)
def told_by(text: str, numbers: tuple[int, ...]) -> Told:
    """-> what the text of a line tells, which shows these signs. Ranks print the same lines, so it is kept."""
    shown, told, *_ = form_of(numbers)
    if ON_GPUS in shown and ON_GPUS.regex.search(text):
        return Told(foreign=True, on_gpus=True)
    foreign = any(sign in shown and sign.regex.search(text) for sign in FOREIGN)
    if foreign and shown.isdisjoint((FIELD, DEVICES)):
        told = told._replace(of_field=False, around=False, kinds=0)  # Its words of training mean something else.
    return told._replace(
        world_size=launchers.world_size(text, shown),
        exit_code=launchers.exit_code(text, shown),
        versions=versions.printed(text, shown),
        foreign=foreign,
        hosts=hosts.named(text, shown),
        placed=hosts.placed(text, shown),
        executed=hosts.executed(text, shown),
    )
