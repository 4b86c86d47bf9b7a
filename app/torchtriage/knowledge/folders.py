"""Lists the YAML files of a knowledge base, in the order in which they are read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from torchtriage.knowledge import BUILT_IN

INVENTORY = "_inventory"  # folder of the messages that libraries can print
MANIFEST = "pack.json"  # file in the folder of a pack: its name, version and digest
VOCABULARY = "_vocabulary"  # folder of the vocabulary lists
FORMS = "_forms"  # folder of the message forms


def files(folders: Iterable[Path], problems: list[str], without: Collection[Path] = ()) -> Iterator[tuple[Path, Path]]:
    """Yields (folder, file) for each file, except those in `without`. The built-in vocabulary and message forms always
    come first, because the engine needs the lists and the forms apply to any entry. A missing folder is added to
    `problems`."""
    folders = list(folders)
    if BUILT_IN not in folders:
        yield from ((BUILT_IN, path) for of in (FORMS, VOCABULARY) for path in sorted(BUILT_IN.glob(f"{of}/*.yaml")))
    for folder in folders:
        if not folder.is_dir():
            problems.append(f"{folder}: no such knowledge folder")
        yield from ((folder, path) for path in sorted(folder.glob("*/*.yaml")) if path not in without)


def pack_of(folder: Path) -> str:
    """Returns name and version of the pack in a folder, such as `ours 1.2.0`. Empty if the folder is not a pack."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return f"{manifest['name']} {manifest['version']}"
    except (OSError, ValueError, TypeError, LookupError):
        return ""


def home_of_packs(data_dir: Path) -> Path:
    """Returns the folder of the installed packs in a data directory."""
    return data_dir / "packs"


def packs_in(home: Path) -> list[Path]:
    """Returns the folders of the installed packs, sorted by name."""
    return [path for path in sorted(home.glob("*@*")) if (path / MANIFEST).is_file()]
