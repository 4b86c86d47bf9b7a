"""The index of one library's messages in all its versions: one file, which is always the same for the same input."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from torchtriage.domain.message_template import LibraryMessage
from torchtriage.matching.inventory import SUFFIX
from torchtriage.reading.zstd import CompressionParameter, compress, decompress

_STRONGEST = {int(CompressionParameter.compression_level): 19}


class Index:
    """The messages of each version of one library, and the public names of classes and functions in the newest."""

    def __init__(self) -> None:
        self._held: dict[LibraryMessage, set[str]] = {}
        self._versions: set[str] = set()
        self._public: dict[str, str] = {}

    @classmethod
    def read(cls, folder: Path, name: str) -> Index:
        """Reads the index. Returns an empty one if the file does not exist."""
        index, path = cls(), folder / f"{name}{SUFFIX}"
        if path.exists():
            head, *lines = decompress(path.read_bytes()).splitlines()
            versions, kinds = json.loads(head)
            index._versions = set(versions)
            for module, offered, rows in map(json.loads, lines):
                index._public |= {f"{module}.{own}": public for own, public in offered.items()}
                for function, kind, template, held in rows:
                    message = LibraryMessage(module, function, kinds[kind], template)
                    index._held[message] = {each for bit, each in enumerate(versions) if held >> bit & 1}
        return index

    def add(self, version: str, messages: Iterable[LibraryMessage], public: dict[str, str]) -> None:
        """Adds the messages of one version. `public` maps the full names of classes and functions to their public
        names."""
        newest = all(_order(version) >= _order(known) for known in self._versions)
        self._public = self._public | public if newest else public | self._public
        self._versions.add(version)
        for message in messages:
            self._held.setdefault(message, set()).add(version)

    def write(self, folder: Path, name: str) -> None:
        """Writes the index. A library without messages gets no file."""
        if not self._held:
            return
        versions = sorted(self._versions, key=_order)
        bits = {version: 1 << place for place, version in enumerate(versions)}
        kinds = sorted({message.kind for message in self._held})
        lines: list[object] = [[versions, kinds]]
        ordered = sorted(self._held, key=lambda each: (each.module, each.function, each.kind, each.template))
        for module, own in groupby(ordered, key=lambda each: each.module):
            messages = list(own)
            names = sorted({each.function.partition(".")[0] for each in messages} - {""})
            offered = {each: self._public[f"{module}.{each}"] for each in names if f"{module}.{each}" in self._public}
            rows = [
                [each.function, kinds.index(each.kind), each.template, sum(bits[held] for held in self._held[each])]
                for each in messages
            ]
            lines.append([module, offered, rows])
        text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}{SUFFIX}").write_bytes(compress(text.encode(), options=_STRONGEST))


def public_names(imported: dict[str, str]) -> dict[str, str]:
    """Returns the shortest name under which each thing is imported, by its full name. `imported` maps the names of
    imports to full names, which may be imports themselves."""
    found: dict[str, str] = {}
    for name, origin in sorted(imported.items()):
        if any(part.startswith("_") for part in name.split(".")):
            continue
        seen = {name}
        while origin in imported and origin not in seen:
            seen.add(origin)
            origin = imported[origin]
        known = found.get(origin)
        if origin.count(".") > name.count(".") and (known is None or name.count(".") < known.count(".")):
            found[origin] = name
    return found


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
