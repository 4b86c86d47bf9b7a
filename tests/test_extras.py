"""The documented dependencies of each extra must be those in pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from torchtriage.cli.main import COMMANDS
from torchtriage.errors import MissingExtra
from torchtriage.extras import LIBRARIES, require

PROJECT = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
DECLARED: dict[str, list[str]] = PROJECT["optional-dependencies"]
NOT_IMPORTED = {"uvloop"}  # uvicorn imports it
WITHIN = {"opentelemetry.proto": "opentelemetry-proto"}  # part of a namespace package that several distributions share


def named(requirements: list[str]) -> set[str]:
    """Returns the distributions of an extra, including those of extras inside it."""
    found = set()
    for requirement in requirements:
        if inner := re.fullmatch(r"torchtriage\[(\w+)\]", requirement):
            found |= named(DECLARED[inner[1]])
        else:
            found.add(re.split(r"[\[>=;]", requirement)[0].lower().replace("_", "-"))
    return found - NOT_IMPORTED


def test_the_extras_are_those_of_the_project() -> None:
    assert set(LIBRARIES) == set(DECLARED)
    assert set(COMMANDS.values()) - {""} <= set(LIBRARIES)


@pytest.mark.parametrize("extra", LIBRARIES)
def test_an_extra_needs_what_it_installs(extra: str) -> None:
    distributions = packages_distributions()
    found = [WITHIN.get(name) or distributions[name][0] for name in LIBRARIES[extra]]
    installed = {name.lower().replace("_", "-") for name in found}
    assert installed == named(DECLARED[extra])


def test_a_missing_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIBRARIES, "s3", ("no_such_library",))
    with pytest.raises(MissingExtra) as raised:
        require("s3", "this")
    assert raised.value.message == "this needs the extra `s3`: pip install 'torchtriage[s3]'"
