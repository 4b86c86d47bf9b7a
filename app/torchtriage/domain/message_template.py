"""A message that a library can print: its words, and slots where values go.

A template is written as Python's f-strings are: `{key} not in {mapping}`, a brace of the message itself doubled. A slot
is named as the library's code names the value; `{}` where that is no short expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

LONGEST_NAME = 40  # characters of a slot's name
_LEAST_WORDS = 2  # of its own, by which a message can be known again
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_EXPRESSION = re.compile(r"[A-Za-z_](?:[\w.()\[\]'\"-]|, )*")


@dataclass(frozen=True, slots=True)
class LibraryMessage:
    """`module` and `function` (with its classes: `Muon.__init__`) that print it; `kind` is the exception's class, the
    warning's, or the level of a logger; of native code, what prints there. `since` and `until` are the first and the
    last version of those read that hold it."""

    module: str
    function: str
    kind: str
    template: str
    since: str = ""
    until: str = ""


class Part(NamedTuple):
    """A piece of a template: `text` is there literally, or is the name of a slot."""

    text: str
    is_slot: bool = False


def parts(template: str) -> tuple[Part, ...]:
    """-> the template's pieces in their order; constants that follow one another are one."""
    found: list[Part] = []
    constant, last = "", 0
    for each in _PART.finditer(template):
        constant += template[last : each.start()]
        last = each.end()
        if each[1] is None:
            constant += each[0][0]
            continue
        found += [Part(constant)] if constant else []
        found.append(Part(each[1], is_slot=True))
        constant = ""
    constant += template[last:]
    return (*found, Part(constant)) if constant else tuple(found)


def literal(text: str) -> str:
    """-> a text of the message itself, as a template holds it."""
    return text.replace("{", "{{").replace("}", "}}")


def slot(name: str) -> str:
    """-> the slot of a value, with its name where that is one."""
    name = " ".join(name.split())
    return f"{{{name}}}" if len(name) <= LONGEST_NAME and _EXPRESSION.fullmatch(name) else "{}"


def tells_something(template: str) -> bool:
    """-> whether a message has enough words of its own to be known again."""
    words = re.findall(r"[^\W\d_]{2,}", " ".join(part.text for part in parts(template) if not part.is_slot))
    return len(words) >= _LEAST_WORDS
