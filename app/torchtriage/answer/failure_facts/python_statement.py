"""Parses a line of Python as a traceback quotes it, even if it is only a part of a statement. The result is a syntax
tree."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

from torchtriage.lazy_regex import lazy_regex

Node = TypeVar("Node", bound=ast.AST)
MAX_LENGTH = 1000  # characters: longer lines are not parsed
_DICT_ITEM = lazy_regex(r"(?:'[^'\n]*'|\"[^\"\n]*\"): ")  # "input_ids": feature["ids"],
_BLOCK = lazy_regex(r"(?:if|while|for|with|async|def|class)\b")
_OTHERS_FRAME = lazy_regex(r'\s+File "[^"\n]+", line \d+')  # another rank's frame that was written into the same line
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class Statement:
    """A parsed line. `code` is the line, `text` is what was parsed, and `start` and `end` mark the part that Python
    underlined."""

    code: str
    text: str
    tree: ast.Module
    start: int = 0
    end: int = MAX_LENGTH * 2

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return tuple(ast.walk(self.tree))

    def all(self, *kinds: type[Node]) -> list[Node]:
        """Returns the nodes of some kinds in the order of the text. If Python underlined a part, only nodes in that
        part count."""
        found = [node for node in self.nodes if isinstance(node, kinds)]
        inside = [node for node in found if self._inside(node)]
        found = inside or [node for node in found if self._around(node)] or found
        return sorted(found, key=lambda node: getattr(node, "col_offset", 0))

    def source(self, node: ast.AST | None) -> str | None:
        """Returns the source text of a node, or None if the line does not contain all of it."""
        text = ast.get_source_segment(self.text, node) if node is not None else None
        return None if text is None or text not in self.code else " ".join(text.split())

    def _inside(self, node: ast.AST) -> bool:
        return self.start <= getattr(node, "col_offset", -1) and (getattr(node, "end_col_offset", 0) or 0) <= self.end

    def _around(self, node: ast.AST) -> bool:
        return getattr(node, "col_offset", 0) <= self.start and (getattr(node, "end_col_offset", 0) or 0) >= self.end


@lru_cache(maxsize=256)
def parsed(code: str, marked: str = "") -> Statement | None:
    """Returns the statement that a line is or begins, with brackets closed and blocks filled, or None if it cannot be
    parsed. `marked` is the part of the line that Python underlined."""
    # A backslash means that the statement continues in a line that no traceback quotes.
    code = code.strip().removesuffix("\\").rstrip()
    if not code or len(code) > MAX_LENGTH:
        return None
    for text in _repairs(code):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as the one about an invalid escape in the quoted line
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        start = text.find(marked) if marked else -1
        if start < 0:
            return Statement(code, text, tree)
        return Statement(code, text, tree, _bytes(text, start), _bytes(text, start + len(marked)))
    return None


def shown(code: str) -> str:
    """Returns a line in the form that a sentence quotes, without a comment, a backslash or another process's frame at
    its end. The result is empty if the line only ends a statement."""
    code = _OTHERS_FRAME.split(code, maxsplit=1)[0].strip().removesuffix("\\").rstrip()
    if _missing_openings(code) or not re.search(r"\w", code):
        return ""
    for place in (at for at, char in enumerate(code) if char == "#"):
        if not _ends_in_string(code[:place]):
            return code[:place].rstrip()
    return code


def _ends_in_string(text: str) -> bool:
    """Returns whether a text ends inside a Python string."""
    quote, escaped = "", False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = bool(quote)
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
    return bool(quote)


def _bytes(text: str, place: int) -> int:
    """Returns the byte offset of a character in a text, as `ast` counts it."""
    return len(text[:place].encode())


def _repairs(code: str) -> Iterator[str]:
    """Yields the line, and statements that it may be a part of, most likely first."""
    for text in dict.fromkeys((code, _closed(code))):
        yield text
        if text.startswith("elif "):
            yield f"{text[2:]} pass"
        if text.startswith("except"):
            yield f"try: pass\n{text} pass"
        if _DICT_ITEM.match(text):
            yield f"{{{text.rstrip(',')}}}"
        if text.startswith("@"):
            yield f"{text}\ndef _cut_(): pass"
        if _BLOCK.match(text):
            yield f"{text} pass" if text.endswith(":") else f"{text}: pass"
        yield f"{text} _cut_"
        yield f"{text}=_cut_)" if text.endswith("=") else f"_cut_({text})"
    opened = _missing_openings(code)
    if opened:
        yield _closed("(" * opened.count(")") + "[" * opened.count("]") + code) if "}" not in opened else code
        yield f"_cut_({code}"


def _closed(code: str) -> str:
    """Returns a line with closing brackets added for those that it leaves open."""
    stack, _ = _brackets(code)
    if not stack:
        return code
    bare = code.rstrip()
    if bare.endswith(("=", "+", "-", "*", "/", "%", ".", " and", " or", " not", " in", " is", " if", " else")):
        bare += " _cut_" if not bare.endswith(".") else "_cut_"
    elif bare.endswith((":",)) and stack[-1] in "{[":
        bare += " _cut_"
    return bare + "".join(_CLOSING[_OPENING.index(bracket)] for bracket in reversed(stack))


def _missing_openings(code: str) -> str:
    """Returns the opening brackets that a line closes but does not open."""
    return _brackets(code)[1]


def _brackets(code: str) -> tuple[list[str], str]:
    stack: list[str] = []
    unopened, quote, place = "", "", 0
    while place < len(code):
        char = code[place]
        if quote:
            if char == "\\":
                place += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char == "#":
            break
        elif char in _OPENING:
            stack.append(char)
        elif char in _CLOSING:
            if stack and _CLOSING[_OPENING.index(stack[-1])] == char:
                stack.pop()
            else:
                unopened += char
        place += 1
    return stack, unopened
