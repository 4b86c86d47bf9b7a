"""Reads the policy: a YAML file about restarts, checked and merged over the default policy."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from torchtriage.errors import SettingError

DEFAULT = Path(__file__).with_name("policy.yaml")
_MAX_BYTES = 1 << 20
_YES_NO = {True: "yes", False: "no"}
_MAX_NUMBER = 100_000  # the largest number of restarts, steps or hosts; a day in seconds is less


@dataclass(frozen=True, slots=True)
class CauseRule:
    """The settings for entries that match `pattern`. None means that the general setting applies."""

    pattern: str
    wait: bool = False
    retries: int | None = None
    delay_seconds: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings of policy.yaml, which explains each of them. The keys of `retries` are the verdict's `retry` (yes,
    once, no) and `unexplained`."""

    name: str
    restarts: int
    restarts_without_progress: int
    retries: dict[str, int]
    same_step: int
    exclude_after: int
    most_hosts: int
    delay_seconds: tuple[int, ...]
    causes: tuple[CauseRule, ...]

    def cause(self, entry: str | None) -> CauseRule:
        """Returns the settings for this entry."""
        found = (rule for rule in self.causes if fnmatchcase(entry or "", rule.pattern))
        return next(found, CauseRule("*"))


def load_policy(path: Path | None = None, setting: str = "--policy") -> Policy:
    """Returns the policy of a file, merged over the default policy, or the default policy if no file is given.

    Raises SettingError with one line that names `setting`, the file and the mistake in it.
    """
    whole = _read(DEFAULT)
    if path is None:
        return _checked(whole, "default")
    try:
        return _checked(_merged(whole, _read(path)), str(path))
    except ValueError as error:
        raise SettingError(f"{setting}: {path}: {error}", setting=setting) from None


def _read(path: Path) -> dict[str, Any]:
    """Raises ValueError with a sentence for the user."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"can't be read: {error.strerror}") from None
    if len(text) > _MAX_BYTES:
        raise ValueError(f"larger than {_MAX_BYTES} bytes")
    try:
        found = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{error.problem or 'no YAML'}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"no YAML: {str(error).splitlines()[0]}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError("not a mapping of keys to values")
    if isinstance(found.get("retries"), dict):  # YAML reads a bare `yes` or `no` as true or false
        found["retries"] = {_YES_NO.get(key, key): value for key, value in found["retries"].items()}
    return found


def _merged(default: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Returns the default with the values of the user's file. Mappings are merged by key, with the user's keys
    first."""
    merged = dict(own)
    for name, value in default.items():
        given = own.get(name)
        if name not in own:
            merged[name] = value
        elif isinstance(given, dict) and isinstance(value, dict):
            merged[name] = {**given, **{key: inner for key, inner in value.items() if key not in given}}
    return merged


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _no_truth(value: Any) -> Any:
    """Rejects `true` and `false`, which Python would accept as numbers."""
    if isinstance(value, bool):
        raise ValueError("not a number")
    return value


_Count = Annotated[int, BeforeValidator(_no_truth), Field(ge=0, le=_MAX_NUMBER)]
_Positive = Annotated[int, BeforeValidator(_no_truth), Field(ge=1, le=_MAX_NUMBER)]
_Delays = Annotated[list[_Count], Field(min_length=1, max_length=100)]


class _RetriesForm(_Form):
    yes: _Count
    once: _Count
    no: _Count
    unexplained: _Count


class _HostsForm(_Form):
    exclude_after: _Positive
    most: _Count


class _CauseForm(_Form):
    wait: bool = False
    retries: _Count | None = None
    delay_seconds: _Delays | None = None


class _PolicyForm(_Form):
    restarts: _Count
    restarts_without_progress: _Count
    retries: _RetriesForm
    same_step: Annotated[_Positive, Field(ge=2)]
    hosts: _HostsForm
    delay_seconds: _Delays
    causes: Annotated[dict[Annotated[str, Field(max_length=200)], _CauseForm], Field(max_length=1000)]


def _checked(content: dict[str, Any], name: str) -> Policy:
    """Raises ValueError with a sentence for the user."""
    try:
        form = _PolicyForm.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {_said(first['type'], first['msg'])}") from None
    rules = [
        CauseRule(pattern, rule.wait, rule.retries, tuple(rule.delay_seconds) if rule.delay_seconds else None)
        for pattern, rule in form.causes.items()
    ]
    return Policy(
        name=name,
        restarts=form.restarts,
        restarts_without_progress=form.restarts_without_progress,
        retries=form.retries.model_dump(),
        same_step=form.same_step,
        exclude_after=form.hosts.exclude_after,
        most_hosts=form.hosts.most,
        delay_seconds=tuple(form.delay_seconds),
        causes=tuple(rules),
    )


def _said(kind: str, message: str) -> str:
    return "unknown key" if kind == "extra_forbidden" else message.removeprefix("Value error, ")
