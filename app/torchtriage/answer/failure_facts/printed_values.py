"""Finds the values that the program printed for names in the message or in the failing line: options, counts,
shapes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.python_statement import parsed
from torchtriage.domain.event import Frame
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line
from torchtriage.facts import progress
from torchtriage.lazy_regex import lazy_regex

_MAX_NAMES = 12
_OPERANDS = ("operand", "other_operand", "argument", "index", "condition")
_MAX_LENGTH = 80  # characters of a value
_IN_MESSAGE = lazy_regex(r"(?<![\w./\\-])['\"`]?(?:--)?([A-Za-z]\w*(?:[_-]\w+)+)['\"`]?(?![\w/\\(.-])")
_QUOTED = lazy_regex(r"['\"`](?:--)?([A-Za-z_]\w{2,40})['\"`]")
_OF_SHAPES = lazy_regex(
    r"(?i)shape|size|dimension|mat1|\bmatch|broadcast|channels|expected .{0,40}\d+[dD]\b|numel|batch"
)
_SHAPE = r"torch\.Size\(\[[\d, ]*\]\)|\(\d+(?:, ?\d+)*,?\)|\[\d+(?:, ?\d+)*\]"
_VALUE = (
    rf"(?:(?P<shape>{_SHAPE})|\"(?P<double>[^\"\n]{{0,{_MAX_LENGTH}}})\"|'(?P<single>[^'\n]{{0,{_MAX_LENGTH}}})'"
    rf"|(?P<plain>-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?|True|False|None|null|true|false)(?![\w./:-])"
    rf"|(?P<word>[\w./~@+-]{{1,{_MAX_LENGTH}}})(?=[,;)}}\]]|\s*$))"
)
# A call in the code of a frame or a warning. Its arguments were not printed by the program: `init(group=True`, but not
# `Namespace(lr=0.1`
OF_A_CALL = lazy_regex(r"(?:^|[\s.=,(])[a-z_]\w*\([^()\n]{0,200}$")
# The identifier of an object or a process, never the value of an option.
_IDENTITY = lazy_regex(r"(?=.*\d)[0-9a-f]{16,}")
_KINDS = ("shape", "double", "single", "plain", "word")


class _Printed(NamedTuple):
    name: str
    value: str
    line: Line


def printed_values(failure: Failure, known: Mapping[str, Fact]) -> Iterator[Fact]:
    """Yields `printed_name` (a name in the message or in the failing operand), `printed_value` (its value in the
    options or counts that the program printed last above the failure) and `printed_line`. `other_printed_name`,
    `other_printed_value` and `other_printed_line` describe a second name. If the message is about shapes, it also
    yields `printed_shapes` (`x [4, 96], target [4]`) of the names in the failing line, and `printed_shapes_line`."""
    settings = list(_settings(failure, known))
    for prefix, printed in zip(("printed", "other_printed"), settings, strict=False):
        yield failure.fact(f"{prefix}_name", printed.name, line=printed.line)
        yield failure.fact(f"{prefix}_value", printed.value, line=printed.line)
        yield failure.fact(f"{prefix}_line", printed.line.number, line=printed.line)
    shapes = list(_shapes(failure))
    if shapes:
        shown = ", ".join(f"{printed.name} {printed.value}" for printed in shapes)
        yield failure.fact("printed_shapes", shown, line=shapes[-1].line)
        yield failure.fact("printed_shapes_line", shapes[-1].line.number, line=shapes[-1].line)


def _settings(failure: Failure, known: Mapping[str, Fact]) -> Iterator[_Printed]:
    names = list(dict.fromkeys((*_of_message(failure), *_of_operands(known))))[:_MAX_NAMES]
    lines = failure.printed if names else ()
    whole = "\n".join([line.text for line in lines])
    for name in names:
        spelled = name.replace("_", "[_-]")
        if re.search(rf"(?<![\w]){spelled}(?!\w)", whole) and (found := _last(name, _option(name), lines, failure)):
            yield found


def _shapes(failure: Failure) -> Iterator[_Printed]:
    raised = failure.raised
    if raised is None or not _OF_SHAPES.search(raised.message):
        return
    for name in list(_names_of(_user_frame(failure)))[:_MAX_NAMES]:
        if found := _last(name, _shape_of(name), failure.printed, failure, shapes=True):
            yield found


def _last(
    name: str, form: re.Pattern[str], lines: tuple[Line, ...], failure: Failure, shapes: bool = False
) -> _Printed | None:
    """Returns the last value printed for a name in lines of the failing rank or of no known rank, or else in any line.
    A value without a parent (`optim.` in `optim.lr`) is preferred. Returns None if only several parents have different
    values."""
    rank, message = failure.root.rank, failure.raised.message if failure.raised else ""
    own = [line for line in lines if rank is None or line.rank in (None, rank)]
    values: dict[str, _Printed] = {}
    for line in reversed(own or lines):
        text = line.text
        if (
            name not in text.replace("-", "_")
            or text.strip() in message
            or not (shapes or not progress.PROGRESS.matches(text))
        ):
            continue
        for found in form.finditer(failure.shown(text) if form.search(text) else ""):
            if OF_A_CALL.search(found.string[: found.start()]):
                continue
            groups = found.groupdict()
            value = next((groups[kind] for kind in _KINDS if groups.get(kind) is not None), "")
            usage = value == name.upper()  # [--local_rank LOCAL_RANK]
            port = found[0].endswith(f":{value}") and value.isdecimal() and value in message  # master-0:29500
            if (
                value
                and not usage
                and not _IDENTITY.fullmatch(value)
                and not port
                and "[redacted" not in value
                and not value.endswith(("...", "-"))
            ):
                values.setdefault(groups["parent"] or "", _Printed(name, _plain(value), line))
        if values and shapes:
            break
    different = {printed.value for printed in values.values()}
    if len(different) > 1 and "" not in values:
        return None
    return values.get("") or next(iter(values.values()), None)


def _plain(value: str) -> str:
    """Returns a value in the form that a sentence uses, such as [4, 3] for torch.Size([4, 3])."""
    return value[len("torch.Size(") : -1] if value.startswith("torch.Size(") else value


@lru_cache(maxsize=256)
def _option(name: str) -> re.Pattern[str]:
    """Returns a regex for `name: value`, `name=value`, `"name": value`, `--name value`, `'--name', 'value'` and `name
    ...... value`."""
    spelled = re.escape(name).replace("_", "[_-]")
    between = r"['\"]?\s{0,3}(?:=|:|\.{2,60}|', (?='))\s{0,20}|(?(flag) |(?!))"
    return re.compile(rf"(?<![\w.-])(?P<parent>(?:\w+\.){{1,4}})?(?P<flag>--)?{spelled}(?:{between}){_VALUE}")


@lru_cache(maxsize=256)
def _shape_of(name: str) -> re.Pattern[str]:
    """Returns a regex for `x.shape: torch.Size([4, 3])`, `x shape (4, 3)` and `x.size() [4, 3]`."""
    asked = r"(?:\.shape|\.size\(\)|[ _]shape|[ _]size)"
    return re.compile(
        rf"(?<![\w.])(?P<parent>)(?P<flag>){re.escape(name)}{asked}['\"]?\s{{0,3}}[:=,]?\s{{0,8}}(?P<shape>{_SHAPE})"
    )


def _of_message(failure: Failure) -> Iterator[str]:
    """Yields the names in the message, such as option names."""
    raised = failure.raised
    text = raised.message[:1000] if raised else ""
    for pattern in (_IN_MESSAGE, _QUOTED):
        for found in pattern.finditer(text):
            yield found[1].replace("-", "_")


def _of_operands(known: Mapping[str, Fact]) -> Iterator[str]:
    """Yields the names in the failing part of the user's line, and in the arguments of the call that failed there."""
    for fact in (known[name] for name in _OPERANDS if name in known):
        statement = parsed(str(fact.value))
        for node in statement.all(ast.Attribute, ast.Name) if statement else ():
            name = _name(node)
            if "_" in name.strip("_") or (isinstance(node, ast.Attribute) and len(name) > 1):
                yield name.strip("_")


def _names_of(frame: Frame | None) -> Iterable[str]:
    """Returns the names of variables in a line, without function names."""
    statement = parsed(frame.code, frame.marked) if frame else None
    if statement is None:
        return ()
    called = {id(call.func) for call in statement.all(ast.Call)}
    nodes = (node for node in statement.all(ast.Attribute, ast.Name) if id(node) not in called)
    return dict.fromkeys(name for name in map(_name, nodes) if name not in ("", "self", "_cut_"))


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _user_frame(failure: Failure) -> Frame | None:
    return next((frame for frame in reversed(failure.frames) if failure.is_user_frame(frame) and frame.code), None)
