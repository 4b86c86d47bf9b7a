"""Describes the signs of an entry: what each looks for in plain words, and its exact pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torchtriage.domain.entry import Entry, Sign
from torchtriage.lazy_regex import lazy_regex
from torchtriage.linear_regex import linear_regex
from torchtriage.matching.sign_alignment import alternatives

OPEN = "…"  # any text
_FLAGS = lazy_regex(r"\(\?[a-zA-Z]+\)")
_GROUP = lazy_regex(r"\((?:\?:|\?P?<\w+>)?(.*)\)([*+?]\??|\{\d+(?:,\d*)?\}\??)?", re.S)
_SPACE = lazy_regex(r"(\\ | |\[ [^\]]*\]|\\s)([+?*]\??)?")
_ABSENT = lazy_regex(r".*(?<!\\)[?*]", re.S)  # what may be left out
_EDGE = lazy_regex(r"\^|\$|\\[bBAz]")
_WORD = lazy_regex(r"(?:\\[^A-Za-z0-9]|[^\\\[\](){}.*+?^$|])+")
_EITHER_CASE = lazy_regex(r"\[([A-Za-z])([A-Za-z])\]")
_CHOICES = 4  # of a group that are shown


@dataclass(frozen=True, slots=True)
class SignPart:
    """One pattern. `words` are its alternatives, in which an ellipsis stands for any text."""

    words: tuple[str, ...]
    pattern: str
    literal: bool
    where: str
    unless: tuple[str, ...]
    weak: bool


def signs_in_words(entry: Entry) -> tuple[tuple[SignPart, ...], ...]:
    """Returns the entry's signs. All parts of a sign must be found."""
    return tuple(tuple(map(_part, sign.all or (sign,))) for sign in entry.signs)


def in_words(pattern: str) -> tuple[str, ...]:
    """Returns what a regex looks for, each alternative once: `(a|b)\\d+ out` gives `(a / b)… out`."""
    ways = alternatives(_FLAGS.sub("", pattern))
    descriptions = (_tidy("".join(map(_token, way))) for way in ways)
    return tuple(dict.fromkeys(way for way in descriptions if way.strip(OPEN)))


@dataclass(frozen=True, slots=True)
class Said:
    """What a regex looks for, as text for people: words of an example that it matches (`shown`), or else its own
    words."""

    words: tuple[str, ...]
    shown: bool


def said(pattern: str, examples: Sequence[str]) -> Said:
    """Returns what a message contains that the regex matches: the words of the examples, once for each alternative."""
    flags = "".join(_FLAGS.findall(pattern))
    ways = ("".join(way) for way in alternatives(_FLAGS.sub("", pattern)))
    found = (_found(flags + way, examples) for way in ways)
    shown = tuple(dict.fromkeys(words for words in found if words))
    return Said(shown or in_words(pattern), bool(shown))


def _found(pattern: str, examples: Sequence[str]) -> str:
    """Returns the words of the first example that match; empty if none does."""
    hits = map(linear_regex(pattern).search, examples)
    return next((" ".join(hit[0].split()) for hit in hits if hit and hit[0].strip()), "")


def _part(sign: Sign) -> SignPart:
    literal = sign.regex is None
    pattern = (sign.text if literal else sign.regex) or ""
    words = (pattern,) if literal else in_words(pattern)
    return SignPart(words, pattern, literal, sign.where, in_words(sign.unless or ""), sign.weak)


def _token(token: str) -> str:
    if _WORD.fullmatch(token):
        return re.sub(r"\\(.)", r"\1", token)
    if _SPACE.fullmatch(token):
        return " "
    if _EDGE.fullmatch(token):
        return ""
    if group := _GROUP.fullmatch(token):
        return "" if (group[2] or "").startswith(("?", "*")) else _choices(group[1])
    if (either := _EITHER_CASE.fullmatch(token)) and either[1].lower() == either[2].lower():
        return either[1]
    plain = token.removesuffix("?")
    return "" if _WORD.fullmatch(plain) and _ABSENT.fullmatch(token) else OPEN


def _choices(source: str) -> str:
    found = in_words(source)
    shown = found[:_CHOICES] + ((OPEN,) if len(found) > _CHOICES else ())
    return f"({' / '.join(shown)})" if len(shown) > 1 else next(iter(shown), OPEN)


def _tidy(text: str) -> str:
    text = re.sub(rf"{OPEN}( ?{OPEN})+", OPEN, text)
    return re.sub(r" {2,}", " ", text).strip()
