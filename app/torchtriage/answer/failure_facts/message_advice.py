"""Extracts the advice that a message itself gives: the sentence that says what to do, and a command from it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.frames import PACKAGES
from torchtriage.answer.templates import short
from torchtriage.domain.fact import Fact
from torchtriage.domain.vocabulary import Vocabulary, VocabularyPattern
from torchtriage.lazy_regex import lazy_regex
from torchtriage.linear_regex import linear_regex

ADVICE = "message-advice"  # the name of a list in the vocabulary
_REFUSED = "refused"
_NO_COMMANDS = frozenset({"advice", _REFUSED})
_WITHIN = 4000  # characters of a message
_SENTENCE = lazy_regex(r"(?<=[\w`'\")][.!?])\s+(?=[A-Z`'\"-])|(?<=[`'\")][.!?])\s+|\n+")
_REQUIREMENT = lazy_regex(r"([A-Za-z][\w.-]*)(?:\[[\w,-]+\])?(?:[<>=!~]=?[\w.*]+(?:,[<>=!~]=?[\w.*]+)*)?")
_UPGRADE = frozenset({"-U", "--upgrade"})
_MIN_LENGTH = 12  # characters of a sentence


def message_advice(failure: Failure) -> Iterator[Fact]:
    """Yields `advice` (the sentence of the message that says what to do) and `advice_command` (the command or setting
    in it: an installation of known packages, a variable of a known library, or an option)."""
    raised = failure.raised
    if raised is None:
        return
    vocabulary = failure.reading.matcher.patterns.vocabulary
    patterns = vocabulary.patterns(ADVICE)
    text = failure.shown(raised.message[:_WITHIN])
    refused = [linear_regex(pattern.regex) for pattern in patterns if pattern.name == _REFUSED]
    whole = (" ".join(part.split()) for part in _SENTENCE.split(text))
    sentences = [each for each in whole if not any(regex.search(each) for regex in refused)]
    asked = ((each, pattern) for pattern in patterns for each in sentences if len(each) >= _MIN_LENGTH)
    advice = next(filter(None, (_advice(each, pattern) for each, pattern in asked)), None)
    if advice is None:
        return
    command = _command(advice, patterns, vocabulary)
    command = command or _command(text, tuple(one for one in patterns if one.name != "setting"), vocabulary)
    # A sentence that is a command keeps its lowercase first letter, because the shell knows no "Pip".
    starts_command = command is not None and advice.split()[0] == command.split()[0]
    yield failure.fact("advice", advice if starts_command else advice[:1].upper() + advice[1:])
    if command is not None:
        yield failure.fact("advice_command", command)


def _advice(sentence: str, pattern: VocabularyPattern) -> str | None:
    """Returns the part of a sentence that says what to do, or None if it is not complete."""
    found = linear_regex(pattern.regex).search(sentence) if pattern.name == "advice" else None
    if found is None or (pattern.unless and linear_regex(pattern.unless).search(sentence)):
        return None
    advice: str = found["advice"].strip().rstrip(":")
    return advice if short(advice) == advice else None


def _command(text: str, patterns: tuple[VocabularyPattern, ...], vocabulary: Vocabulary) -> str | None:
    for pattern in patterns:
        found = linear_regex(pattern.regex).search(text) if pattern.name not in _NO_COMMANDS else None
        if found is None:
            continue
        if pattern.name == "install":
            command = _install(found["packages"], vocabulary)
        elif pattern.name == "variable":
            command = f"export {found['name']}={found['value']}"
        else:
            command = found["code"]
        if command is not None:
            return command
    return None


def _install(packages: str, vocabulary: Vocabulary) -> str | None:
    """Returns the command that installs packages, quoted for the shell, or None if one of them is not known."""
    groups = vocabulary.lists[PACKAGES].groups
    known = {name.lower().replace("_", "-") for package, modules in groups for name in (package, *modules)}
    words = []
    for word in packages.split():
        word = word.strip("\"'`,.;")
        found = _REQUIREMENT.fullmatch(word)
        if word not in _UPGRADE and (found is None or found[1].lower().replace("_", "-") not in known):
            break
        words.append(word if word in _UPGRADE else shlex.quote(word))
    named = [word for word in words if word not in _UPGRADE]
    return f"pip install {' '.join(words)}" if named else None
