"""Reads the knowledge base: folders of YAML files in, a KnowledgeBase out, or every problem at once with file:line."""

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
from torchtriage.knowledge.renamed_keys import renewed
from torchtriage.knowledge.schema import AddedCases, EntryForm, MessageForms
from torchtriage.knowledge.vocabulary_schema import VocabularyForm
from torchtriage.knowledge.yaml_positions import Loader, line_of

log = logging.getLogger(__name__)
AREA_ROLES = "area-roles"  # the list that says which roles all entries of an area have
F = TypeVar("F", bound=BaseModel)


def load(
    folders: Iterable[Path] = (BUILT_IN,),
    beside: Mapping[str, Entry] | None = None,
    without: Collection[Path] = (),
) -> KnowledgeBase:
    """Reads every `<area>/<name>.yaml`; an id in a later folder replaces the same id of an earlier one. A vocabulary's
    list and message forms in a later folder add to the built-in ones, which are always there; a file with
    `adds_to` adds cases to an entry. `beside` are entries of folders that were read already; files that are `without`
    are not read.

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
        digest.update(path.name.encode() + b"\0" + path.read_bytes())  # fingerprints rest on it too
    vocabulary = _vocabulary([each for each in read if each[0].parent.name == VOCABULARY], problems)
    entries: dict[str, Entry] = dict(beside or {})
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
    """-> the cases that each file of a folder, which loads, adds to an entry."""
    read = ((path, path.read_bytes()) for path in sorted(folder.glob("*/*.yaml")))
    found = (_added_cases(path, source)[0] for path, source in read if adds_cases(source))
    return [added for added in found if added]


def _add(additions: Iterable[Entry], entries: dict[str, Entry]) -> Iterator[str]:
    """Adds cases to the entries -> what is wrong with those that can't be."""
    for added in additions:
        entry = entries.get(added.id)
        taken = {case.id for case in entry.cases} & {case.id for case in added.cases} if entry else set()
        if entry is None or taken:
            told = f"it has a case {min(taken)} already" if taken else "there is no such entry"
            yield f"{added.file}:1: adds_to: {added.id}: {told}"
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
            problems.append(
                f"{_name(path)}:1: no list has this name, so nothing reads it; there are {', '.join(lists)}"
            )
        else:
            problems += _unknown_roles(path, source, built) if name == AREA_ROLES else []
            lists[name] = lists[name].plus(built) if name in lists else built
    return Vocabulary(lists)


@lru_cache(maxsize=256)
def _vocabulary_list(path: Path, source: bytes) -> tuple[VocabularyList | None, tuple[str, ...]]:
    """-> the list of one file, and what is wrong with it; kept for the next time that folders are read, as to prove the
    patterns of all lists takes a quarter of a second."""
    problems: list[str] = []
    form = _form(VocabularyForm, path, source, problems)
    return form.build(path.stem) if form else None, tuple(problems)


def _unknown_roles(path: Path, source: bytes, areas: VocabularyList) -> Iterator[str]:
    for area, roles in areas.groups:
        for number, role in enumerate(roles):
            if role not in set(Role):
                line = line_of(source, ("groups", area, number))
                yield f"{_name(path)}:{line}: no role {role!r}; there are {', '.join(Role)}"


def _entry(path: Path, source: bytes, vocabulary: Vocabulary, problems: list[str]) -> Entry | None:
    """-> the entry of one file; what is wrong with it goes to `problems`."""
    roles = () if problems else vocabulary.groups(AREA_ROLES).get(path.parent.name, ())
    entry, wrong = _built(path, source, tuple(map(Role, roles)))
    problems += wrong
    return entry


@lru_cache(maxsize=1024)
def _built(path: Path, source: bytes, area_roles: tuple[Role, ...]) -> tuple[Entry | None, tuple[str, ...]]:
    """-> the entry of one file, and what is wrong with it; kept for the next time that folders are read, as all of them
    take a second and few change."""
    problems: list[str] = []
    form = _form(EntryForm, path, source, problems)
    if form is not None and form.id != f"{path.parent.name}.{path.stem}":
        problems.append(f"{_name(path)}:1: the id {form.id!r} is not the file's path")
    return form.build(_name(path), area_roles) if form and not problems else None, tuple(problems)


@lru_cache(maxsize=256)
def _added_cases(path: Path, source: bytes) -> tuple[Entry | None, tuple[str, ...]]:
    """-> the cases that a file adds, and what is wrong with them; kept as entries are."""
    problems: list[str] = []
    form = _form(AddedCases, path, source, problems)
    return form.build(_name(path)) if form else None, tuple(problems)


@lru_cache(maxsize=16)
def _message_forms(path: Path, source: bytes) -> tuple[Entry | None, tuple[str, ...]]:
    """-> the message forms of one file, and what is wrong with it; kept as entries are."""
    problems: list[str] = []
    form = _form(MessageForms, path, source, problems)
    return form.build(_name(path)) if form else None, tuple(problems)


def _form(kind: type[F], path: Path, source: bytes, problems: list[str]) -> F | None:
    """-> the content of one file; what is wrong with it goes to `problems`."""
    name = _name(path)
    try:
        data = yaml.load(source, Loader=Loader)
    except (yaml.YAMLError, ValueError, TypeError) as error:  # the last two of a 13th month, and of a list as a key
        mark = getattr(error, "problem_mark", None)
        problems.append(f"{name}:{mark.line + 1 if mark else 1}: {getattr(error, 'problem', error)}")
        return None
    if kind is EntryForm:
        data, renamed = renewed(data)
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
