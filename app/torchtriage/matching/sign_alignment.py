"""Aligns a sign with a text, token by token, to show how far it matches and what is missing or different."""

from __future__ import annotations

import re
from dataclasses import dataclass

import re2

from torchtriage.domain.entry import Sign
from torchtriage.lazy_regex import lazy_regex

_ATOM = lazy_regex(
    r"\\[pP]\{\w+\}|\\x\{?[0-9A-Fa-f]+\}?|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[]", re.S
)  # an escape, a class or a character
_REPEAT = lazy_regex(r"[*+?]\??|\{\d+(?:,\d*)?\}\??")
_FLAGS = lazy_regex(r"\(\?[a-zA-Z]+\)")
_PLAIN = lazy_regex(r"\\[^A-Za-z0-9]|[^\\\[\](){}.*+?^$|]")
_ESCAPED = lazy_regex(r"\\(.)", re.S)
_MAX_TOKENS = 60
_GROUP_WEIGHT = 4  # characters; a group of alternatives counts about as much as a word
_INSTEAD = 40  # characters of the text that are shown in place of a missing token, or before one that comes later


@dataclass(frozen=True, slots=True)
class SignToken:
    """A word or another part of a sign. `state` is matched, different (the text has `instead` there), found (later in
    the text, after `instead`) or missing."""

    sign: str
    state: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Alignment:
    """A sign next to a text. `share` is the part of its tokens, weighted by length, that the text contains in order."""

    tokens: tuple[SignToken, ...]
    share: float

    @property
    def whole(self) -> bool:
        return all(token.state == "matched" for token in self.tokens)


def align(sign: Sign, text: str) -> Alignment:
    """Returns the best alignment of a sign that is not an `all` sign, over its alternatives."""
    source = re.escape(sign.text) if sign.text is not None else sign.regex or ""
    flags = "".join(_FLAGS.findall(source))
    found = [_align(tokens, flags, text) for tokens in alternatives(_FLAGS.sub("", source)) if tokens]
    best = max(found, key=lambda alignment: (alignment.whole, alignment.share), default=Alignment((), 0.0))
    if sign.text is None:
        return best
    plain = (SignToken(_ESCAPED.sub(r"\1", token.sign), token.state, token.instead) for token in best.tokens)
    return Alignment(tuple(plain), best.share)


def alternatives(source: str) -> list[list[str]]:
    """Returns the tokens of each top-level alternative of a regex: words of plain characters, groups and classes."""
    found: list[list[str]] = [[]]
    word = ""
    for atom in _atoms(source):
        plain = _PLAIN.fullmatch(atom)
        if plain and not atom.isspace() and atom != r"\ ":
            word += atom
            continue
        if word:
            found[-1].append(word)
            word = ""
        if atom == "|":
            found.append([])
        else:
            found[-1].append(atom)
    if word:
        found[-1].append(word)
    return found


def _atoms(source: str) -> list[str]:
    """Returns the characters, escapes, classes and whole groups of a regex, each with its repeat."""
    atoms: list[str] = []
    at = 0
    while at < len(source):
        start = at
        at = _group_end(source, at) if source[at] == "(" else _atom_end(source, at)
        if repeat := _REPEAT.match(source, at):
            at = repeat.end()
        atoms.append(source[start:at])
    return atoms


def _atom_end(source: str, at: int) -> int:
    found = _ATOM.match(source, at)
    return found.end() if found else at + 1


def _group_end(source: str, at: int) -> int:
    depth = 0
    while at < len(source):
        depth += {"(": 1, ")": -1}.get(source[at], 0)
        at = _atom_end(source, at)
        if not depth:
            break
    return at


def _align(tokens: list[str], flags: str, text: str) -> Alignment:
    """Aligns the longest possible run of tokens from the start, then searches the remaining tokens in the rest of the
    text."""
    tokens = tokens[: _MAX_TOKENS - 1] + (["".join(tokens[_MAX_TOKENS - 1 :])] if len(tokens) >= _MAX_TOKENS else [])
    reach, at = 0, 0
    for count in range(1, len(tokens) + 1):
        found = _search(flags + "".join(tokens[:count]), text, 0)
        if found is None:
            break
        reach, at = count, found[1]
    aligned, end = [SignToken(token, "matched") for token in tokens[:reach]], at
    for token in tokens[reach:]:
        found = _search(flags + token, text, at)
        if token.isspace() or token == r"\ " or found is None:
            first = not token.isspace() and len(aligned) == reach and text[at:].strip()
            state = "different" if first else "found" if token.isspace() else "missing"
            aligned.append(SignToken(token, state, text[at : at + _INSTEAD].strip() if first else ""))
        else:
            shown_before = any(known.state == "different" for known in aligned) and at == end
            aligned.append(SignToken(token, "found", "" if shown_before else _short(text[at : found[0]].strip())))
            at = found[1]
    weights = [(_weight(token.sign), token.state in ("matched", "found")) for token in aligned]
    demanded = sum(weight for weight, _ in weights)
    there = sum(weight for weight, has in weights if has)
    return Alignment(tuple(aligned), round(there / demanded, 2) if demanded else float(reach == len(tokens)))


def _weight(token: str) -> int:
    """Returns the number of characters of a token. Optional tokens and classes weigh nothing."""
    if token.endswith(("?", "*")) and not token.endswith(("\\?", "\\*")):
        return 0
    if token.startswith("("):
        return _GROUP_WEIGHT
    return len(token.strip()) if _PLAIN.match(token) else 0


def _short(text: str) -> str:
    return text if len(text) <= _INSTEAD else f"{text[: _INSTEAD // 2]}…{text[-_INSTEAD // 2 :]}"


def _search(pattern: str, text: str, start: int) -> tuple[int, int] | None:
    """Returns start and end of the first match at or after `start`, or None."""
    try:
        found = re2.compile(f"(?m){pattern}").search(text[start:])
    except re2.error:
        return None  # part of a regex may not be a valid regex
    return (start + int(found.start()), start + int(found.end())) if found else None
