"""The messages that libraries can print: a library, a module and a text in, the place that prints it out.

It is asked only about a failure that was found already. A library's file is read when it is first asked for, and of it
only the module that is asked for is parsed. `python -m scripts.inventory` writes the files.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import re2

from torchtriage.domain.message_template import LibraryMessage, Part, parts
from torchtriage.matching.masking import mask_all
from torchtriage.package_data import data_folder
from torchtriage.reading.zstd import ZstdError, decompress

_LOG = logging.getLogger(__name__)
SUFFIX = ".jsonl.zst"
NATIVE = ".native"  # behind the name of a library: what its compiled code prints
_LONGEST = 4000  # characters of a message that are compared
_MOST_TRIED = 8  # messages whose words all are in the text
_BEGIN = re2.compile(r"\W*\w*")  # a message's first word, which stands in its template too unless a value does
_WORDS = re.compile(r"[A-Za-z][\w.-]{0,60}(?: [A-Za-z][\w.-]{0,60}){0,3}")
_SPACE = re2.compile(r"\s+")


@dataclass(frozen=True)
class KnownMessage:
    """A message of the inventory that was found in a log. `public`: the name by which people know what prints it, of
    classes in the package that offers them; `values`: the slots (named, or ``) and what stood there."""

    message: LibraryMessage
    public: str
    values: tuple[tuple[str, str], ...]

    def masked(self, text: str) -> str:
        """-> a line that the message is, with `<value>` for the words in its slots: the same in every job. Numbers and
        paths stay, as they are masked everywhere."""
        for _, value in self.values:
            if _WORDS.fullmatch(value) and mask_all(value) == value:
                text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "<value>", text)
        return text


class Library:
    """The messages of one library, of all versions that were read."""

    def __init__(self, written: bytes) -> None:
        """`written`: the lines of its file. The first tells the versions and the kinds of messages; each other one is a
        module: its name, the names under which its classes and functions are offered, and its messages."""
        head, _, self._modules = written.partition(b"\n")
        self.versions, self._kinds = json.loads(head)

    def __iter__(self) -> Iterator[KnownMessage]:
        """Yields all messages, without values."""
        for line in self._modules.splitlines():
            module, offered, rows = json.loads(line)
            yield from (self._known(module, offered, row, ()) for row in rows)

    def find(
        self, text: str, module: str | None = None, function: str | None = None, call: str = ""
    ) -> KnownMessage | None:
        """-> the message that `text` is, with its values: of `module`, of all where that is None; those of `function`
        before others, and of several the one with the most words of its own. Where classes of a module share it, the
        one that `call` names; the module alone where it names none. None where it is none of them."""
        text = _flat(text)
        begin = _BEGIN.match(text)[0]
        fitting = []
        for name, offered, rows in self._beginning(begin) if module is None else self._of_module(module):
            for row in rows:
                words = _constants(row[2]) if row[2].startswith((begin, "{")) else ()
                if words and all(word in text for word in words):
                    own = row[0].rpartition(".")[2] == function
                    called = own and re.search(rf"\b{re.escape(row[0].partition('.')[0])}\b", call) is not None
                    fitting.append((own, sum(map(len, words)), called, name, offered, row))
        fitting.sort(key=lambda each: each[:3], reverse=True)
        for own, _, called, name, offered, row in fitting[:_MOST_TRIED]:
            values = _values(row[2], text)
            if values is not None:
                words = _constants(row[2])
                alike = {other[0] for *_, at, _, other in fitting if at == name and _constants(other[2]) == words}
                shared = module is not None and not called and own and len(alike) > 1
                return self._known(name, offered, ["", *row[1:]] if shared else row, values)
        return None

    def holds(self, module: str) -> bool:
        """-> whether the library has messages of a module."""
        return self._line_of(module) is not None

    def _of_module(self, module: str) -> Iterator[Any]:
        line = self._line_of(module)
        yield from [json.loads(line)] if line else []

    def _beginning(self, begin: str) -> Iterator[Any]:
        """Yields the modules in which a message begins with a word, or with a slot."""
        word = json.dumps(begin, ensure_ascii=False)[:-1].encode()
        yield from (json.loads(line) for line in self._modules.splitlines() if word in line or b'"{' in line)

    def _line_of(self, module: str) -> bytes | None:
        begin = b'["' + module.encode() + b'",'
        at = 0 if self._modules.startswith(begin) else self._modules.find(b"\n" + begin) + 1
        if at == 0 and not self._modules.startswith(begin):
            return None
        return self._modules[at : self._modules.find(b"\n", at)]

    def _known(
        self, module: str, offered: dict[str, str], row: Any, values: tuple[tuple[str, str], ...]
    ) -> KnownMessage:
        function, kind, template, held = row
        first, last = (held & -held).bit_length() - 1, held.bit_length() - 1
        since, until = self.versions[first], self.versions[last]
        own, _, rest = function.partition(".")
        public = offered.get(own, f"{module}.{own}" if own else module)
        message = LibraryMessage(module, function, self._kinds[kind], template, since, until)
        return KnownMessage(message, f"{public}.{rest}" if rest else public, values)


class Inventory:
    """The libraries of a folder by their names; a folder that is not there holds none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Library | None] = {}

    def names(self) -> list[str]:
        """-> the names of all libraries."""
        return sorted(path.name.removesuffix(SUFFIX) for path in self._folder.glob(f"*{SUFFIX}"))

    def library(self, name: str) -> Library | None:
        """-> a library's messages; None where the inventory lacks it. A damaged file counts as missing, and a warning
        names it once."""
        if name not in self._read:
            path = self._folder / f"{name}{SUFFIX}"
            try:
                self._read[name] = Library(decompress(path.read_bytes()))
            except FileNotFoundError:
                self._read[name] = None
            except (OSError, ZstdError, ValueError) as error:
                _LOG.warning("%s cannot be read, so %s's messages are not told: %s", path, name, error)
                self._read[name] = None
        return self._read[name]

    def of_file(self, path: str) -> tuple[Library, str] | None:
        """-> the library that a file of Python code belongs to, and its module there; None where it is of none."""
        names = path.replace("\\", "/").removesuffix(".py").removesuffix("/__init__").split("/")
        for place, name in enumerate(names):
            library = self.library(name) if name.isidentifier() else None
            module = ".".join(names[place:])
            if library is not None and library.holds(module):
                return library, module
        return None


@lru_cache(maxsize=1)
def built_in() -> Inventory:
    """-> the inventory that is shipped."""
    return Inventory(data_folder("knowledge_base") / "_inventory")


def _flat(text: str) -> str:
    return " ".join(text[:_LONGEST].split())


def _constants(template: str) -> list[str]:
    """-> the constants of a template, with single spaces as a flat text has them."""
    pieces = parts(template) if "{" in template or "}" in template else (Part(template),)
    return [" ".join(part.text.split()) for part in pieces if not part.is_slot]


def _values(template: str, text: str) -> tuple[tuple[str, str], ...] | None:
    """-> the slots of a template with what is there in a text that begins with it; None where none does."""
    pieces = parts(template)
    found = re2.match("(?s)" + "".join(map(_regex_of, pieces)) + ("$" if pieces[-1].is_slot else ""), text)
    if found is None:
        return None
    slots = [part.text for part in pieces if part.is_slot]
    return tuple((name, value.strip()) for name, value in zip(slots, found.groups(), strict=True))


def _regex_of(part: Part) -> str:
    return "(.*?)" if part.is_slot else r"\s*".join(map(re2.escape, _SPACE.split(part.text)))
