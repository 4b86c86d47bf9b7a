"""Reads the knowledge base: folders of YAML files in, a KnowledgeBase out, or every problem at once with file:line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from torchtriage.domain.entry import Entry, KnowledgeBase
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.schema import EntryForm
from torchtriage.knowledge.yaml_positions import Loader, line_of


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
            try:
                source = path.read_bytes()
            except OSError as error:
                problems.append(f"{path}: can't be read: {error.strerror}")
                continue
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
        data = yaml.load(source, Loader=Loader)
    except (yaml.YAMLError, ValueError, TypeError) as error:  # the last two of a 13th month, and of a list as a key
        mark = getattr(error, "problem_mark", None)
        problems.append(f"{name}:{mark.line + 1 if mark else 1}: {getattr(error, 'problem', error)}")
        return None
    try:
        form = EntryForm.model_validate(data)
    except ValidationError as error:
        problems += [f"{name}:{line_of(source, found['loc'])}: {_place(found['loc'])}: {found['msg']}"
                     for found in error.errors(include_url=False)]  # fmt: skip
        return None
    if form.id != f"{path.parent.name}.{path.stem}":
        problems.append(f"{name}:1: the id {form.id!r} is not the file's path")
        return None
    return form.build(name)


def _place(location: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in location) or "entry"
