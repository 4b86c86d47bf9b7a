"""Tells shell commands from other code that a step shows (Python, YAML, options), and puts a prompt before them."""

from __future__ import annotations

import ast

from torchtriage.lazy_regex import lazy_regex

_POWERSHELL = lazy_regex(r"\$env:\w|[A-Z][a-z]+-[A-Z]\w+ ")
# What no shell command starts with: an option; JSON; a comment, also of a scheduler; `key: value`; `key = value`; an
# instruction of a Dockerfile; `section.key=value`, `+key=value`, `group/key=value` or `SECTION.KEY value`, which
# change the configuration of a program.
_SETTING = lazy_regex(
    r'--|["{#]|[\w.-]+:[ \t]+\S|\w+ = |[A-Z]{3,} |\+?\w+[./][\w./]*=|\+\w+=|[A-Z][A-Z_]*(?:\.[A-Z][A-Z_]*)+ '
)
_SLOT = lazy_regex(r"\{([a-z_]+)(?::d)?\}")
_LEFT_OUT = lazy_regex(r", …|…, ")  # further arguments, which the step does not show
_END_OF_HEAD = lazy_regex(r":(?=\s|$)")  # with torch.no_grad():
_FOLLOWS = " pass"
# Python reads `nvidia-smi` as a difference, `hostname` as a name and `sort < names` as a comparison.
_WORDS = ast.Name | ast.BinOp | ast.UnaryOp | ast.Compare
_OF_WORDS = ast.operator | ast.unaryop | ast.Lt | ast.Gt | ast.Attribute | ast.Constant | ast.expr_context


def with_prompt(run: str) -> str:
    """Returns what a step shows, after a `$ ` if it is to be run in a shell, or `PS> ` if that shell is PowerShell."""
    if _POWERSHELL.match(run):
        return f"PS> {run}"
    return f"$ {run}" if is_shell_command(run) else run


def is_shell_command(run: str) -> bool:
    """Returns whether what a step shows is a shell command, and not Python, JSON or YAML, or an option. `run` may have
    slots, and `…` where it leaves something out."""
    return not (_SETTING.match(run) or _is_python(_SLOT.sub(r"\1", run)))


def _is_python(run: str) -> bool:
    code = _LEFT_OUT.sub("", run).replace("…", "...")
    if code.startswith("@"):
        code += f"\ndef f():{_FOLLOWS}"
    body = _parsed(code)
    if body is not None:
        return any(not _may_be_shell(part) for part in body)
    arguments = _parsed(f"f({code}\n)") if ", " in code else None  # padding=True, max_length=512
    if arguments is not None and isinstance(call := getattr(arguments[0], "value", None), ast.Call):
        return not call.args
    return any(_parsed(code[: head.end()] + _FOLLOWS) is not None for head in _END_OF_HEAD.finditer(code))


def _parsed(code: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(code).body
    except (SyntaxError, ValueError):
        return None


def _may_be_shell(part: ast.stmt) -> bool:
    """Returns whether Python only reads a part of a shell command as an expression."""
    if not isinstance(part, ast.Expr) or not isinstance(part.value, _WORDS):
        return False
    return all(isinstance(node, _WORDS | _OF_WORDS) for node in ast.walk(part.value))
