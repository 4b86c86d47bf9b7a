"""Which files a knowledge base is made of: folders in, files in the order in which they count out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from torchtriage.knowledge import BUILT_IN

INVENTORY = "_inventory"  # the folder of what libraries can print
VOCABULARY = "_vocabulary"  # the folder of the named lists, beside those of the areas
FORMS = "_forms"  # the folder of the message forms


def files(folders: Iterable[Path], problems: list[str]) -> Iterator[tuple[Path, Path]]:
    """Yields each file with its folder. The built-in vocabulary and message forms always come first: the engine asks
    for the lists by name, and forms fit any entry. A folder that is missing goes to `problems`."""
    folders = list(folders)
    if BUILT_IN not in folders:
        yield from ((BUILT_IN, path) for of in (FORMS, VOCABULARY) for path in sorted(BUILT_IN.glob(f"{of}/*.yaml")))
    for folder in folders:
        if not folder.is_dir():
            problems.append(f"{folder}: no such folder of knowledge")
        yield from ((folder, path) for path in sorted(folder.glob("*/*.yaml")))
