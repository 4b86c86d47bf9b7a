"""Reads the knowledge base: folders of YAML files in, a KnowledgeBase out, or every problem at once with file:line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from app.domain.entry import Entry, KnowledgeBase
from app.errors import KnowledgeError
from app.knowledge import BUILT_IN
from app.knowledge.schema import EntryForm

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(folders: Iterable[Path] = (BUILT_IN,)) -> KnowledgeBase:
    """Reads every `<area>/<name>.yaml`; an id in a later folder replaces the same id of an earlier one.

    Raises KnowledgeError with all problems of all files.
    """
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    digest = hashlib.sha256()
    for folder in folders:
        if not folder.is_dir():
            problems.append(f"{folder}: no such folder of knowledge")
        for path in sorted(folder.glob("*/*.yaml")):
            source = path.read_bytes()
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + source + b"\0")
            entry = _read(path, source, problems)
            if entry is not None:
                entries[entry.id] = entry
    if problems:
        raise KnowledgeError(problems)
    return KnowledgeBase(entries, f"sha256:{digest.hexdigest()}")


def _read(path: Path, source: bytes, problems: list[str]) -> Entry | None:
    """-> the entry of one file; what is wrong with it goes to `problems`."""
    name = f"{path.parent.name}/{path.name}"
    try:
        data = yaml.load(source, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problems.append(f"{name}:{mark.line + 1 if mark else 1}: {getattr(error, 'problem', error)}")
        return None
    try:
        form = EntryForm.model_validate(data)
    except ValidationError as error:
        problems += [f"{name}:{_line_of(source, found['loc'])}: {_place(found['loc'])}: {found['msg']}"
                     for found in error.errors(include_url=False)]  # fmt: skip
        return None
    if form.id != f"{path.parent.name}.{path.stem}":
        problems.append(f"{name}:1: the id {form.id!r} is not the file's path")
        return None
    return form.build(name)


def _place(location: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in location) or "entry"


def _line_of(source: bytes, location: tuple[Any, ...]) -> int:
    """-> the line, from 1, of the deepest node on `location` that the file has."""
    node = yaml.compose(source, Loader=_Loader)
    for part in location:
        if isinstance(node, yaml.MappingNode):
            found = next((value for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = node.value[part]
        else:
            found = None
        if found is None:
            break
        node = found
    return int(node.start_mark.line) + 1 if node is not None else 1
