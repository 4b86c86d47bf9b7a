"""Corrects the user's line of code. Input: the line as the traceback shows it, and what a step changes. Output: the
line to put in its place.

The line comes from the log, and a reader pastes it. So it is shown only if it is Python that no shell would run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

import re2

from torchtriage.answer.templates import SLOT, slots
from torchtriage.domain.entry import Rewrite
from torchtriage.lazy_regex import lazy_regex

_MAX_LENGTH = 200  # characters of a line
_EXPANDED = lazy_regex(r"[$`;&|<>#\\]")  # characters that a shell expands, or behind which it runs another command
_CALL = lazy_regex(r"^(?:\w+ = )?[A-Za-z_][\w.]*\(")  # a command that can be an example of a call
_LIBRARY = "torch"  # its names (`torch.bfloat16`) mean the same in every script


def rewritten(code: str, rewrite: Rewrite, values: Mapping[str, str]) -> str | None:
    """Returns the line after a step's `rewrite`. None if a slot has no value, nothing is replaced, or the result is not
    a whole statement of Python."""
    if not slots(f"{rewrite.find} {rewrite.replace}") <= values.keys():
        return None
    find = SLOT.sub(lambda slot: re.escape(values[slot[1]]), rewrite.find)
    replace = SLOT.sub(lambda slot: values[slot[1]].replace("\\", ""), rewrite.replace)
    return _shown(re2.sub(find, replace, code, 1), code)


def with_options(code: str, example: str) -> str | None:
    """Returns the line with the keyword arguments of an example that calls the same function, such as
    `torch.load(path, map_location="cpu")`. None if `example` is no such call, or its values are not plain."""
    if len(code) > _MAX_LENGTH or not _CALL.match(example):
        return None
    asked, statement = _only_call(example), _parsed(code.strip())
    if asked is None or statement is None or not asked.keywords:
        return None
    if not all(keyword.arg and _is_plain(keyword.value) for keyword in asked.keywords):
        return None
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        if _is_same(call.func, asked.func) and _takes_options(call, asked):
            return _shown(_with_keywords(code.strip(), call, asked), code)
    return None


def _shown(line: str, code: str) -> str | None:
    """Returns the corrected line if it differs from the user's, is a statement with a call or an import, and has
    nothing that a shell would expand: a shell refuses its parentheses."""
    line = line.strip()
    if line == code.strip() or len(line) > _MAX_LENGTH or not line.isprintable() or _EXPANDED.search(line):
        return None
    statement = _parsed(line)
    if statement is None or any(isinstance(part, ast.Expr) and not _is_call(part.value) for part in statement.body):
        return None  # Python reads `rm -rf / x(1)` as a sum.
    calls = any(isinstance(node, ast.Call | ast.Import | ast.ImportFrom) for node in ast.walk(statement))
    return line if calls else None


def _is_call(value: ast.expr) -> bool:
    return isinstance(value.value if isinstance(value, ast.Await) else value, ast.Call)


def _parsed(line: str) -> ast.Module | None:
    """Returns the statement that a line is, or the head of one (`for …:`)."""
    try:
        return ast.parse(f"{line} pass" if line.endswith(":") else line)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _only_call(example: str) -> ast.Call | None:
    """Returns the call that an example consists of, `x = call(…)` included."""
    statement = _parsed(example)
    if statement is None or len(statement.body) != 1:
        return None
    first = statement.body[0]
    value = first.value if isinstance(first, ast.Expr | ast.Assign) else None
    return value if isinstance(value, ast.Call) else None


def _is_plain(value: ast.expr) -> bool:
    """Returns whether a value means the same in every script: a literal, or a name of torch."""
    if isinstance(value, ast.Attribute):
        return ast.unparse(value).startswith(f"{_LIBRARY}.")
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


def _is_same(function: ast.expr, asked: ast.expr) -> bool:
    """Returns whether two names mean the same function: `load` and `torch.load` do."""
    mine, other = f".{ast.unparse(function)}", f".{ast.unparse(asked)}"
    return mine.endswith(other) or other.endswith(mine)


def _takes_options(call: ast.Call, asked: ast.Call) -> bool:
    """Returns whether none of the keyword arguments can be among the positional or unpacked ones of the user's call."""
    unpacked = any(keyword.arg is None for keyword in call.keywords) or any(
        isinstance(argument, ast.Starred) for argument in call.args
    )
    return not unpacked and len(call.args) <= len(asked.args)


def _with_keywords(line: str, call: ast.Call, asked: ast.Call) -> str:
    """Returns the line with each keyword argument of `asked` set in `call`, the rest as the user wrote it."""
    for start, end, text in sorted(_edits(line, call, asked), reverse=True):
        line = line[:start] + text + line[end:]
    return line


def _edits(line: str, call: ast.Call, asked: ast.Call) -> Iterator[tuple[int, int, str]]:
    """Yields what to put in place of which characters of the line."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    added = []
    for keyword in asked.keywords:
        option_value = ast.unparse(keyword.value).replace("'", '"')
        if (value := given.get(keyword.arg)) is not None:
            yield _column(line, value.col_offset), _column(line, value.end_col_offset), option_value
        else:
            added.append(f"{keyword.arg}={option_value}")
    if added:
        end = _column(line, call.end_col_offset) - 1
        written = line[:end].rstrip()
        lead = "" if written.endswith("(") else " " if written.endswith(",") else ", "
        yield len(written), end, lead + ", ".join(added)


def _column(line: str, offset: int | None) -> int:
    """Returns the index of a character from its offset in UTF-8, which the parser counts."""
    return len(line.encode()[:offset].decode())
