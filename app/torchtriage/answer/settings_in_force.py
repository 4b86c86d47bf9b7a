"""Whether a step's command changes nothing, because the log shows that the variables it sets have these values."""

from __future__ import annotations

from collections.abc import Mapping

from torchtriage.lazy_regex import lazy_regex

_EXPORT = lazy_regex(r"export((?: [A-Za-z_]\w*=[\w:.,/+-]+)+)")


def is_in_force(command: str, values: Mapping[str, str]) -> bool:
    """Returns whether a command only exports environment variables that already have these values in this run.
    The fact about a variable has its name in lower case: `nccl_debug` is the value of NCCL_DEBUG."""
    found = _EXPORT.fullmatch(command)
    return found is not None and all(_has(each, values) for each in found[1].split())


def _has(assignment: str, values: Mapping[str, str]) -> bool:
    """Returns whether the variable has the value, or all its items if it is a list."""
    variable, _, wanted = assignment.partition("=")
    given = values.get(variable.lower(), "").lower().split(",")
    return all(item in given for item in wanted.lower().split(","))
