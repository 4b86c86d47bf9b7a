"""Finds the library function that printed the failure's message, and the values in the message. The source is the
inventory, which is used if no case of an entry knows the message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.frames import library_of
from torchtriage.domain.fact import Fact
from torchtriage.domain.message_template import parts
from torchtriage.matching.inventory import NATIVE, Inventory, KnownMessage
from torchtriage.parsing.nccl import Nccl, warning_of

_CONSTRUCTORS = re.compile(r"\.__(?:init|new|post_init)__$")
_PASSING = "passing-exceptions"  # the name of a list in the vocabulary
_MAX_VALUES, _MAX_VALUE_LENGTH = 3, 60
# The place that a line of compiled code names itself. The inventory names only one of the files that print a message.
_SOURCE = re.compile(r"(?<![\w/.])((?:[\w.-]+/)*[\w-]+\.(?:cc|cpp|cu|cuh|h|hpp)):\d+")
_SELF = re.compile(r"^(?:self|cls)\.")
# These expressions are no useful names of values: names of message texts, and calls other than len().
_NO_NAME = re.compile(r"\w|err|error|ex|exc|exception|msg|message|reason|(?!len\().*\(.*|.*__name__")


class Printed(NamedTuple):
    """The name of a library, and the known message that the failure shows."""

    library: str
    known: KnownMessage


def library_message(failure: Failure, printed: Printed) -> Iterator[Fact]:
    """Yields `raised_by` (the public name of the library's function, or the source file of compiled code), `own_check`
    (the name of the exception, unless its cause can be temporary) and `message_values` (the values of the message's
    slots that the library's code names)."""
    library, known = printed
    passing = failure.reading.matcher.patterns.vocabulary.words(_PASSING)
    if failure.raised is not None and not any(word in failure.raised.type for word in passing):
        yield failure.fact("own_check", failure.raised.type.rpartition(".")[2])
    if not _raised_by_other_library(failure, library, known):
        yield failure.fact("raised_by", _printing_function(library, known, failure.finding.event.line.text))
    if values := list(_values(known))[:_MAX_VALUES]:
        yield failure.fact("message_values", ", ".join(values))


def printed_by(failure: Failure, inventory: Inventory) -> Printed | None:
    """Returns the library message that the failure shows, or None if the inventory has none."""
    raised = failure.raised
    if raised is None:
        warned = warning_of(failure.finding.event.text)
        return _of_compiled([Nccl.name], warned, inventory) if warned else None
    frame = raised.frames[-1] if raised.frames else None
    if frame is None or not raised.message.strip():
        return None
    of_file = inventory.of_file(frame.file) if not frame.user_code else None
    if of_file is not None:
        library, module = of_file
        call = raised.frames[-2].code if len(raised.frames) > 1 else ""
        if (known := library.find(raised.message, module, frame.function, call)) is not None:
            return Printed(module.partition(".")[0], known)
    return _of_compiled([name for name in inventory.names() if name.endswith(NATIVE)], raised.message, inventory)


def _of_compiled(names: list[str], text: str, inventory: Inventory) -> Printed | None:
    for name in names:
        library = inventory.library(name)
        if library is not None and (known := library.find(text)) is not None:
            return Printed(name.removesuffix(NATIVE), known)
    return None


def _raised_by_other_library(failure: Failure, library: str, known: KnownMessage) -> bool:
    """Returns whether compiled code of one library raised the message below a line of another library, which is more
    informative."""
    if "/" not in known.message.module or failure.raised is None or not failure.raised.frames:
        return False
    return library_of(failure.raised.frames[-1].file) not in {None, library}


def _printing_function(library: str, known: KnownMessage, line: str) -> str:
    """Returns the function's public name, or the class for a constructor. For compiled code it returns the file that
    the line names, or else the file in the inventory, with the function if known."""
    message = known.message
    if known.public == message.module:
        place = _SOURCE.search(line)
        return f"{library} ({place[0] if place else message.module})"
    if "/" in message.module:
        return f"{message.function} ({message.module})"
    return _CONSTRUCTORS.sub("(…)", known.public)


def _values(known: KnownMessage) -> Iterator[str]:
    """Yields `name = value` for each slot whose name adds something to the message."""
    constant_text = " ".join(part.text for part in parts(known.message.template) if not part.is_slot)
    for slot, value in known.values:
        name = _SELF.sub("", slot)
        is_named = re.search(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", constant_text) is not None
        if name and value and len(value) <= _MAX_VALUE_LENGTH and not is_named and not _NO_NAME.fullmatch(name):
            yield f"{name} = {value}"
