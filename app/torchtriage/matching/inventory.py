"""The inventory: the messages that libraries can print. Finds the place in a library's code that prints a text.

It is used only after a failure was found. A library's file is read at its first use, and only the module that is needed
is parsed. `python -m scripts.inventory` writes the files.
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
NATIVE = ".native"  # suffix of a library's name, for the messages of its compiled code
_MAX_LENGTH = 4000  # characters of a message that are compared
_MAX_COMPARED_MESSAGES = 8  # limit on the messages that are compared, of those whose words all occur in the text
_BEGIN = re2.compile(r"\W*\w*")  # the first word of a message; it is also in the template, unless it is a value
_WORDS = re.compile(r"[A-Za-z][\w.-]{0,60}(?: [A-Za-z][\w.-]{0,60}){0,3}")
_SPACE = re2.compile(r"\s+")


@dataclass(frozen=True)
class KnownMessage:
    """A message of the inventory that was found in a log. `public` is the public name of the class or function that
    prints it. `values` are (slot, text in the log); the slot is empty if it has no name."""

    message: LibraryMessage
    public: str
    values: tuple[tuple[str, str], ...]

    def masked(self, text: str) -> str:
        """Returns the line with `<value>` in place of the words in the message's slots, so that it is the same in every
        job. Numbers and paths stay, because `masking` replaces them everywhere."""
        for _, value in self.values:
            if _WORDS.fullmatch(value) and mask_all(value) == value:
                text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "<value>", text)
        return text


class Library:
    """The messages of one library, in all versions that were read."""

    def __init__(self, written: bytes) -> None:
        """`written` is the content of the library's file. The first line has the versions and the kinds of messages.
        Each other line is a module: its name, the public names of its classes and functions, and its messages."""
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
        """Finds the message that `text` is an instance of, with its values, or returns None. Searches `module`, or all
        modules if it is None. Prefers messages of `function`, then those with the most constant words. If classes of a
        module share the message, returns that of the class named in `call`, or only the module if `call` names none."""
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
        for own, _, called, name, offered, row in fitting[:_MAX_COMPARED_MESSAGES]:
            values = _values(row[2], text)
            if values is not None:
                words = _constants(row[2])
                alike = {other[0] for *_, at, _, other in fitting if at == name and _constants(other[2]) == words}
                shared = module is not None and not called and own and len(alike) > 1
                return self._known(name, offered, ["", *row[1:]] if shared else row, values)
        return None

    def holds(self, module: str) -> bool:
        """Returns whether the library has messages of a module."""
        return self._line_of(module) is not None

    def _of_module(self, module: str) -> Iterator[Any]:
        line = self._line_of(module)
        yield from [json.loads(line)] if line else []

    def _beginning(self, begin: str) -> Iterator[Any]:
        """Yields the modules with a message that begins with the word `begin` or with a slot."""
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
    """The libraries of a folder, by name. Empty if the folder does not exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Library | None] = {}

    def names(self) -> list[str]:
        """Returns the names of all libraries."""
        return sorted(path.name.removesuffix(SUFFIX) for path in self._folder.glob(f"*{SUFFIX}"))

    def library(self, name: str) -> Library | None:
        """Returns the messages of a library, or None if the inventory does not have it. A damaged file counts as
        missing and is logged once."""
        if name not in self._read:
            path = self._folder / f"{name}{SUFFIX}"
            try:
                self._read[name] = Library(decompress(path.read_bytes()))
            except FileNotFoundError:
                self._read[name] = None
            except (OSError, ZstdError, ValueError) as error:
                _LOG.warning("%s cannot be read, so %s's messages are not used: %s", path, name, error)
                self._read[name] = None
        return self._read[name]

    def of_file(self, path: str) -> tuple[Library, str] | None:
        """Returns the library to which a Python file belongs, and its module, or None."""
        names = path.replace("\\", "/").removesuffix(".py").removesuffix("/__init__").split("/")
        for place, name in enumerate(names):
            library = self.library(name) if name.isidentifier() else None
            module = ".".join(names[place:])
            if library is not None and library.holds(module):
                return library, module
        return None


@lru_cache(maxsize=1)
def built_in() -> Inventory:
    """Returns the inventory that is part of this package."""
    return Inventory(data_folder("knowledge_base") / "_inventory")


def _flat(text: str) -> str:
    return " ".join(text[:_MAX_LENGTH].split())


def _constants(template: str) -> list[str]:
    """Returns the constant parts of a template, with whitespace collapsed to single spaces."""
    pieces = parts(template) if "{" in template or "}" in template else (Part(template),)
    return [" ".join(part.text.split()) for part in pieces if not part.is_slot]


def _values(template: str, text: str) -> tuple[tuple[str, str], ...] | None:
    """Returns the slots of a template with their values, if `text` begins with an instance of the template, else
    None. An instance that is the whole text comes first, so that the full stop of a template ends the message and not
    a dotted name in it."""
    pieces = parts(template)
    regex = "(?s)" + "".join(map(_regex_of, pieces))
    found = re2.match(regex + "$", text) or (None if pieces[-1].is_slot else re2.match(regex, text))
    if found is None:
        return None
    slots = [part.text for part in pieces if part.is_slot]
    return tuple((name, value.strip()) for name, value in zip(slots, found.groups(), strict=True))


def _regex_of(part: Part) -> str:
    return "(.*?)" if part.is_slot else r"\s*".join(map(re2.escape, _SPACE.split(part.text)))
