"""Finds the messages that Python code can print: reads a module's source and returns templates with slots. Nothing is
imported or run."""

from __future__ import annotations

import ast
import re
import string
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from torchtriage.domain.message_template import LibraryMessage, literal, slot, tells_something

# logger.error and similar functions, by their level; warnings.warn prints `UserWarning: …`.
_LEVELS = {"error": "error", "exception": "error", "critical": "critical", "fatal": "critical"}
_LOGGERS = re.compile(r"(?i)^_?(?:[\w.]*\.)?_?(?:log|logger|logging|[\w]*_logger|[\w]*_log)$")
_CHECKS = {
    "torch._check": "RuntimeError",
    "torch._check_index": "IndexError",
    "torch._check_value": "ValueError",
    "torch._check_type": "TypeError",
    "torch._check_not_implemented": "NotImplementedError",
}
_PERCENT = re.compile(r"%(?:\((\w+)\))?[#0 +-]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?([diouxXeEfFgGcrsa%])")
_TRIMMED = frozenset({"strip", "lstrip", "rstrip", "format_map"})
_ASSIGNMENTS = 400  # assignments of one function; a longer function is generated code
_DEEP = 20  # operands of one message, and names that refer to others


@dataclass
class _Scope:
    """The values of names: strings that were assigned in a function, then those of its module."""

    names: dict[str, ast.expr] = field(default_factory=dict)
    outer: _Scope | None = None

    def value(self, name: str) -> ast.expr | None:
        found = self.names.get(name)
        return found if found is not None or self.outer is None else self.outer.value(name)


def parsed(source: str | bytes) -> ast.Module:
    """Returns a module's syntax tree. Raises SyntaxError, ValueError and RecursionError if Python cannot parse it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example about an invalid escape in a string
        return ast.parse(source)


def messages(tree: ast.Module, module: str) -> Iterator[LibraryMessage]:
    """Yields the messages of one module, in the order of its source."""
    yield from _Reader(module).of_block(tree.body, "", _Scope(_strings(tree.body)))


def imported_names(tree: ast.Module, module: str, is_package: bool) -> dict[str, str]:
    """Returns what a module imports by `from … import …`: maps its full name in this module to the original full name.
    `is_package` is true if the module is a package's `__init__`."""
    names: dict[str, str] = {}
    here = module.split(".")
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + is_package] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{module}.{each.asname or each.name}": f"{origin}.{each.name}" for each in node.names}
    return names


@dataclass
class _Reader:
    module: str

    def of_block(self, body: list[ast.stmt], inside: str, scope: _Scope) -> Iterator[LibraryMessage]:
        """Yields the messages in the statements of one function, class or module. Those of nested functions come
        last."""
        for node in _own_nodes(body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self.of_block(node.body, _joined(inside, node.name), _Scope(_strings(node.body), scope))
            elif isinstance(node, ast.ClassDef):
                yield from self.of_block(node.body, _joined(inside, node.name), scope)
            else:
                yield from self._said(node, inside, scope)

    def _said(self, node: ast.AST, inside: str, scope: _Scope) -> Iterator[LibraryMessage]:
        found = _raised(node) or _asserted(node) or _called(node)
        if found is None:
            return
        kind, text, arguments = found
        template = _template(text, scope, arguments)
        if tells_something(template):
            yield LibraryMessage(self.module, inside, kind, template)


def _own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yields the nodes of a block in the order of the source, except those inside functions and classes."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack += reversed(list(ast.iter_child_nodes(node)))


_Found = tuple[str, ast.expr, list[ast.expr]]


def _raised(node: ast.AST) -> _Found | None:
    """Returns the exception's class, message and other arguments of a `raise`, or None."""
    if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call) or not node.exc.args:
        return None
    name = _dotted(node.exc.func).rpartition(".")[2]
    if not name[:1].isupper() and not name[:2].strip("_")[:1].isupper():
        return None  # raise make_error(…): the class is unknown here
    texts = [each for each in node.exc.args if not isinstance(each, ast.Starred)]
    telling = next((each for each in texts if _is_text(each)), texts[0] if texts else None)
    return (name, telling, []) if telling is not None else None


def _asserted(node: ast.AST) -> _Found | None:
    return ("AssertionError", node.msg, []) if isinstance(node, ast.Assert) and node.msg is not None else None


def _called(node: ast.AST) -> _Found | None:
    """Returns the same for a call that logs, warns, or raises unless a condition is true."""
    if not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Starred):
        return None
    name = _dotted(node.func)
    above, _, last = name.rpartition(".")
    if name == "warnings.warn":
        return _warned(node), node.args[0], []
    if last in _LEVELS and _LOGGERS.match(above):
        return _LEVELS[last], node.args[0], node.args[1:]
    if name in _CHECKS and len(node.args) > 1:
        text = node.args[1]
        return _CHECKS[name], text.body if isinstance(text, ast.Lambda) else text, []
    return None


def _warned(node: ast.Call) -> str:
    kinds = [each.value for each in node.keywords if each.arg == "category"] + node.args[1:2]
    name = _dotted(kinds[0]).rpartition(".")[2] if kinds else ""
    return name if name.endswith("Warning") else "UserWarning"


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([*([node.id] if isinstance(node, ast.Name) else []), *reversed(parts)])


def _strings(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """Returns the strings that are assigned to names in a block. A name with two values is left out."""
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for node in _own_nodes(body):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            twice.add(node.target.id)
        elif isinstance(node, ast.Assign) and isinstance(target, ast.Name):
            if target.id in found:
                twice.add(target.id)
            found[target.id] = node.value
        if len(found) > _ASSIGNMENTS:
            break
    return {name: value for name, value in found.items() if name not in twice and _is_text(value)}


def _is_text(node: ast.expr) -> bool:
    """Returns whether an expression is written as a string."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod) and (_is_text(node.left) or _is_text(node.right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in {"format", *_TRIMMED} and _is_text(node.func.value)
    return isinstance(node, ast.JoinedStr)


def _template(node: ast.expr, scope: _Scope, arguments: list[ast.expr], depth: int = 0) -> str:
    """Returns the message with `{…}` in place of values. `arguments` are those of a logger's call, for `%s` in the
    text."""
    if arguments and (text := _plain(node, scope)) is not None:
        return _of_percent(text, arguments, None)
    return _pieces(node, scope, depth)


def _pieces(node: ast.expr, scope: _Scope, depth: int) -> str:
    if depth > _DEEP:
        return slot("")
    if isinstance(node, ast.Constant):
        return literal(str(node.value))
    if isinstance(node, ast.JoinedStr):
        return "".join(_pieces(each, scope, depth + 1) for each in node.values)
    if isinstance(node, ast.FormattedValue):
        same = node.value
        return _pieces(same, scope, depth + 1) if _is_text(same) else slot(ast.unparse(same))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _pieces(node.left, scope, depth + 1) + _pieces(node.right, scope, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and (text := _plain(node.left, scope)) is not None:
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return _of_percent(text, values, node.right if isinstance(node.right, ast.Dict) else None)
    if isinstance(node, ast.Call):
        return _of_call(node, scope, depth)
    if isinstance(node, ast.Name) and (known := scope.value(node.id)) is not None:
        return _pieces(known, scope, depth + 1)
    return slot(ast.unparse(node))


def _of_call(node: ast.Call, scope: _Scope, depth: int) -> str:
    name = _dotted(node.func).rpartition(".")[2]
    if isinstance(node.func, ast.Attribute):
        if name in _TRIMMED:
            return _pieces(node.func.value, scope, depth + 1).strip()
        if name == "format" and (text := _plain(node.func.value, scope)) is not None:
            return _of_format(text, node)
    if name in ("dedent", "cleandoc") and len(node.args) == 1:
        return textwrap.dedent(_pieces(node.args[0], scope, depth + 1)).strip()
    return slot(ast.unparse(node))


def _plain(node: ast.expr, scope: _Scope, depth: int = 0) -> str | None:
    """Returns a text without values, which is one constant or several joined ones. None for anything else."""
    if depth > _DEEP:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_plain(each, scope, depth + 1) for each in (node.left, node.right)]
        return None if None in parts else "".join(filter(None, parts))
    if isinstance(node, ast.Name) and (known := scope.value(node.id)) is not None:
        return _plain(known, scope, depth + 1)
    return None


def _value(node: ast.expr) -> str:
    """Returns the slot of a value. A value that is always the same becomes part of the message."""
    return literal(str(node.value)) if isinstance(node, ast.Constant) else slot(ast.unparse(node))


def _of_percent(text: str, values: list[ast.expr], mapping: ast.Dict | None) -> str:
    rest = iter(values)
    parts, last = [], 0
    for found in _PERCENT.finditer(text):
        parts.append(literal(text[last : found.start()]))
        last = found.end()
        if found[2] == "%":
            parts.append("%")
        elif found[1] or mapping is not None:
            parts.append(slot(found[1] or ""))
        else:
            value = next(rest, None)
            parts.append(_value(value) if value is not None else slot(""))
    return "".join([*parts, literal(text[last:])])


def _of_format(text: str, call: ast.Call) -> str:
    named = {each.arg: each.value for each in call.keywords if each.arg}
    parts, count = [], 0
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError:
        return literal(text)
    for constant, name, _, _ in parsed:
        parts.append(literal(constant))
        if name is None:
            continue
        first = re.split(r"[.\[]", name)[0]
        place = int(first) if first.isdecimal() else count if not first else None
        count += not first
        value = named.get(first) if place is None else call.args[place] if place < len(call.args) else None
        parts.append(_value(value) if value is not None else slot(first))
    return "".join(parts)


def _joined(inside: str, name: str) -> str:
    return f"{inside}.{name}" if inside else name
