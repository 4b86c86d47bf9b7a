"""Reads the YAML files of a knowledge base. Reports the problems of all files at once, each with file:line."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from torchtriage.domain.entry import Entry, KnowledgeBase, Role
from torchtriage.domain.vocabulary import Vocabulary, VocabularyList
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.added_cases import adds_cases, with_cases
from torchtriage.knowledge.folders import FORMS, INVENTORY, VOCABULARY, files, pack_of
from torchtriage.knowledge.renamed_keys import with_current_keys
from torchtriage.knowledge.schema import AddedCases, EntryForm, MessageForms
from torchtriage.knowledge.vocabulary_schema import VocabularyForm
from torchtriage.knowledge.yaml_positions import Loader, line_of

log = logging.getLogger(__name__)
AREA_ROLES = "area-roles"  # the vocabulary list of the roles that all entries of an area have
F = TypeVar("F", bound=BaseModel)


def load(
    folders: Iterable[Path] = (BUILT_IN,),
    known_entries: Mapping[str, Entry] | None = None,
    without: Collection[Path] = (),
) -> KnowledgeBase:
    """Reads every `<area>/<name>.yaml` of the folders. An entry in a later folder replaces the one with the same id.
    Vocabulary lists and message forms are added to the built-in ones. A file with `adds_to` adds cases to an entry.
    `known_entries` has entries that were already loaded from other folders; files in `without` are skipped.

    Raises KnowledgeError with all problems of all files.
    """
    problems: list[str] = []
    digest = hashlib.sha256()
    folders = list(folders)
    packs = {folder: pack_of(folder) for folder in folders}
    read: list[tuple[Path, bytes]] = []
    for folder, path in files(folders, problems, without):
        try:
            source = path.read_bytes()
        except OSError as error:
            problems.append(f"{path}: can't be read: {error.strerror}")
            continue
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + source + b"\0")
        read.append((path, source))
    for path in sorted((BUILT_IN / INVENTORY).glob("*")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())  # fingerprints depend on these files too
    vocabulary = _vocabulary([each for each in read if each[0].parent.name == VOCABULARY], problems)
    entries: dict[str, Entry] = dict(known_entries or {})
    forms: list[Entry] = []
    additions: list[Entry] = []
    for path, source in read:
        if path.parent.name == FORMS:
            file, wrong = _message_forms(path, source)
            problems += wrong
            forms += [file] if file else []
            continue
        if path.parent.name == VOCABULARY:
            continue
        if adds_cases(source):
            file, wrong = _added_cases(path, source)
            problems += wrong
            pack = packs.get(path.parent.parent, "")
            additions += [replace(file, cases=tuple(replace(case, pack=pack) for case in file.cases))] if file else []
        elif (entry := _entry(path, source, vocabulary, problems)) is not None:
            folder = path.parent.parent
            entries[entry.id] = replace(entry, pack=packs[folder]) if packs.get(folder) else entry
    problems += _add(additions, entries)
    if problems:
        raise KnowledgeError(problems)
    return KnowledgeBase(entries, f"sha256:{digest.hexdigest()}", vocabulary, tuple(forms))


def added_by(folder: Path) -> list[Entry]:
    """Returns the cases that the files of a folder add to entries, one entry per file. The folder must load without
    problems."""
    read = ((path, path.read_bytes()) for path in sorted(folder.glob("*/*.yaml")))
    found = (_added_cases(path, source)[0] for path, source in read if adds_cases(source))
    return [added for added in found if added]


def _add(additions: Iterable[Entry], entries: dict[str, Entry]) -> Iterator[str]:
    """Adds cases to `entries` in place. Yields a problem for each case that cannot be added."""
    for added in additions:
        entry = entries.get(added.id)
        taken = {case.id for case in entry.cases} & {case.id for case in added.cases} if entry else set()
        if entry is None or taken:
            reason = f"it already has a case {min(taken)}" if taken else "there is no such entry"
            yield f"{added.file}:1: adds_to: {added.id}: {reason}"
        else:
            entries[added.id] = with_cases(entry, added)


def _vocabulary(read: list[tuple[Path, bytes]], problems: list[str]) -> Vocabulary:
    lists: dict[str, VocabularyList] = {}
    for path, source in read:
        built, wrong = _vocabulary_list(path, source)
        problems += wrong
        if built is None:
            continue
        name, own = path.stem, path.parent.parent == BUILT_IN
        if own and not built.purpose:
            problems.append(f"{_name(path)}:1: purpose: missing")
        elif not own and name not in lists:
            problems.append(f"{_name(path)}:1: no vocabulary list has this name; the lists are {', '.join(lists)}")
        else:
            problems += _unknown_roles(path, source, built) if name == AREA_ROLES else []
            lists[name] = lists[name].plus(built) if name in lists else built
    return Vocabulary(lists)


@lru_cache(maxsize=256)
def _vocabulary_list(path: Path, source: bytes) -> tuple[VocabularyList | None, tuple[str, ...]]:
    """Returns the list of one file, and its problems. Cached, because testing the patterns of all lists takes 0.25
    s."""
    problems: list[str] = []
    form = _form(VocabularyForm, path, source, problems)
    return form.build(path.stem) if form else None, tuple(problems)


def _unknown_roles(path: Path, source: bytes, areas: VocabularyList) -> Iterator[str]:
    for area, roles in areas.groups:
        for number, role in enumerate(roles):
            if role not in set(Role):
                line = line_of(source, ("groups", area, number))
                yield f"{_name(path)}:{line}: unknown role {role!r}; the roles are {', '.join(Role)}"


def _entry(path: Path, source: bytes, vocabulary: Vocabulary, problems: list[str]) -> Entry | None:
    """Returns the entry of one file, or None. Adds its problems to `problems`."""
    roles = () if problems else vocabulary.groups(AREA_ROLES).get(path.parent.name, ())
    entry, wrong = _built(path, source, tuple(map(Role, roles)))
    problems += wrong
    return entry


@lru_cache(maxsize=1024)
def _built(path: Path, source: bytes, area_roles: tuple[Role, ...]) -> tuple[Entry | None, tuple[str, ...]]:
    """Returns the entry of one file, and its problems. Cached, because all files take a second and few of them
    change."""
    problems: list[str] = []
    form = _form(EntryForm, path, source, problems)
    if form is not None and form.id != f"{path.parent.name}.{path.stem}":
        problems.append(f"{_name(path)}:1: the id {form.id!r} differs from the file's path")
    return form.build(_name(path), area_roles) if form and not problems else None, tuple(problems)


@lru_cache(maxsize=256)
def _added_cases(path: Path, source: bytes) -> tuple[Entry | None, tuple[str, ...]]:
    """Returns the cases that a file adds, and its problems. Cached like entries."""
    problems: list[str] = []
    form = _form(AddedCases, path, source, problems)
    return form.build(_name(path)) if form else None, tuple(problems)


@lru_cache(maxsize=16)
def _message_forms(path: Path, source: bytes) -> tuple[Entry | None, tuple[str, ...]]:
    """Returns the message forms of one file, and its problems. Cached like entries."""
    problems: list[str] = []
    form = _form(MessageForms, path, source, problems)
    return form.build(_name(path)) if form else None, tuple(problems)


def _form(kind: type[F], path: Path, source: bytes, problems: list[str]) -> F | None:
    """Returns the validated content of one file, or None. Adds its problems to `problems`."""
    name = _name(path)
    try:
        data = yaml.load(source, Loader=Loader)
    # ValueError for a date such as month 13, TypeError for a list as a key
    except (yaml.YAMLError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        problems.append(f"{name}:{mark.line + 1 if mark else 1}: {getattr(error, 'problem', error)}")
        return None
    if kind is EntryForm:
        data, renamed = with_current_keys(data)
        for place, new in renamed:
            log.warning("%s:%d: %r is now written %r", name, line_of(source, place), place[-1], new)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        problems += [f"{name}:{line_of(source, found['loc'])}: {_place(found['loc'])}: {found['msg']}"
                     for found in error.errors(include_url=False)]  # fmt: skip
        return None


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _place(location: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in location) or "entry"
