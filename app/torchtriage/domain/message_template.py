"""A message that a library can print: its words, and slots for values.

A template is written like a Python f-string: `{key} not in {mapping}`, with doubled braces for the message's own. A
slot has the name of the value in the library's code, or is `{}` if the code has no short expression for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

MAX_NAME_LENGTH = 40  # characters of the name of a slot
_MIN_WORDS = 2  # words of its own that are needed to recognize a message
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_EXPRESSION = re.compile(r"[A-Za-z_](?:[\w.()\[\]'\"-]|, )*")


@dataclass(frozen=True, slots=True)
class LibraryMessage:
    """A message of a library. `module` and `function` (with its classes: `Muon.__init__`) print it. `kind` is the class
    of the exception or warning, or the level of a logger; in native code it is the function that prints the message.
    `since` and `until` are the first and last version, among those read, that contain it."""

    module: str
    function: str
    kind: str
    template: str
    since: str = ""
    until: str = ""


class Part(NamedTuple):
    """A piece of a template. `text` is either literal text or the name of a slot."""

    text: str
    is_slot: bool = False


def parts(template: str) -> tuple[Part, ...]:
    """Returns the pieces of the template in order. Adjacent literal texts are joined."""
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
    """Returns literal text of the message in the form that a template uses."""
    return text.replace("{", "{{").replace("}", "}}")


def slot(name: str) -> str:
    """Returns the slot for a value, with its name if this is a valid one."""
    name = " ".join(name.split())
    return f"{{{name}}}" if len(name) <= MAX_NAME_LENGTH and _EXPRESSION.fullmatch(name) else "{}"


def tells_something(template: str) -> bool:
    """Returns whether a message has enough words of its own to be recognized."""
    words = re.findall(r"[^\W\d_]{2,}", " ".join(part.text for part in parts(template) if not part.is_slot))
    return len(words) >= _MIN_WORDS
