"""Which files a knowledge base is made of: folders in, files in the order in which they count out."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from torchtriage.knowledge import BUILT_IN

INVENTORY = "_inventory"  # the folder of what libraries can print
MANIFEST = "pack.json"  # in a folder that is a pack: its name, version and digest
VOCABULARY = "_vocabulary"  # the folder of the named lists, beside those of the areas
FORMS = "_forms"  # the folder of the message forms


def files(folders: Iterable[Path], problems: list[str], without: Collection[Path] = ()) -> Iterator[tuple[Path, Path]]:
    """Yields each file with its folder, but for those that are `without`. The built-in vocabulary and message forms
    always come first: the engine asks for the lists by name, and forms fit any entry. A folder that is missing goes to
    `problems`."""
    folders = list(folders)
    if BUILT_IN not in folders:
        yield from ((BUILT_IN, path) for of in (FORMS, VOCABULARY) for path in sorted(BUILT_IN.glob(f"{of}/*.yaml")))
    for folder in folders:
        if not folder.is_dir():
            problems.append(f"{folder}: no such folder of knowledge")
        yield from ((folder, path) for path in sorted(folder.glob("*/*.yaml")) if path not in without)


def pack_of(folder: Path) -> str:
    """-> the name and version of the pack that a folder of knowledge is, as `ours 1.2.0`; empty where it is none."""
    try:
        told = json.loads((folder / MANIFEST).read_bytes())
        return f"{told['name']} {told['version']}"
    except (OSError, ValueError, TypeError, LookupError):
        return ""


def home_of_packs(data_dir: Path) -> Path:
    """-> where the packs of a data directory are."""
    return data_dir / "packs"


def packs_in(home: Path) -> list[Path]:
    """-> the folders of the packs that are installed, by name."""
    return [path for path in sorted(home.glob("*@*")) if (path / MANIFEST).is_file()]
