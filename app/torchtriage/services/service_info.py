"""The parts and settings of a service, for its operators. Secrets are hidden."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path

from torchtriage import __version__
from torchtriage.domain.entry import Entry
from torchtriage.engine import VERSION
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.folders import pack_of
from torchtriage.lazy_regex import lazy_regex
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.settings.options import PREFIX, default_of
from torchtriage.storage import incidents

_PASSWORD = lazy_regex(r"(://[^/@:]*:)[^/@]*@")


@dataclass(frozen=True, slots=True)
class SetOption:
    """A setting by its variable's name. `value` is None for a secret that is set; `changed`: it differs from the
    default."""

    variable: str
    value: str | None
    changed: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of entries, and the number of its entries that are in use. `pack` is the name and version of its pack,
    or empty."""

    folder: Path
    built_in: bool
    entries: int
    pack: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """`waiting` is the number of incidents without a final state. `left_out` has the problems of pack files that cannot
    be loaded."""

    version: str
    engine: str
    database: str
    waiting: int
    digest: str
    sources: tuple[Source, ...]
    left_out: tuple[str, ...]
    options: tuple[SetOption, ...]


def about(service: Service) -> About:
    with service.database.reading() as session:
        waiting, _ = incidents.queued(session)
    return About(
        version=__version__,
        engine=VERSION,
        database="SQLite" if service.database.is_sqlite else "Postgres",
        waiting=waiting,
        digest=service.knowledge.digest,
        sources=tuple(_sources(service)),
        left_out=service.folders.left_out,
        options=tuple(_options(service.settings)),
    )


def folder_of(service: Service, entry: Entry) -> Path | None:
    """Returns the folder of an entry's file, or None if the file was deleted. If several folders have the same id, the
    last one is in use."""
    return next((folder for folder in reversed(service.folders.paths) if (folder / entry.file).exists()), None)


def _sources(service: Service) -> list[Source]:
    used = Counter(folder_of(service, entry) for entry in service.knowledge.entries.values())
    return [Source(folder, folder == BUILT_IN, used[folder], pack_of(folder)) for folder in service.folders.paths]


def _options(settings: Settings) -> list[SetOption]:
    found = []
    for declared in fields(Settings):
        value = getattr(settings, declared.name)
        changed = value != declared.default
        shown = _PASSWORD.sub(r"\1…@", _text(value)) if changed else default_of(declared)
        secret = not declared.repr and bool(value)
        sentence = str(declared.metadata["sentence"])
        found.append(SetOption(PREFIX + declared.name.upper(), None if secret else shown, changed, sentence))
    return found


def _text(value: object) -> str:
    match value:
        case None | "" | () | frozenset():
            return ""
        case bool():
            return "yes" if value else "no"
        case tuple() | frozenset():
            pairs = [f"{one[0]}={_text(one[1])}" if isinstance(one, tuple) else _text(one) for one in value]
            return ("; " if any("," in pair for pair in pairs) else ",").join(pairs)
    return str(value)
