from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader

from torchtriage.web.pages.compiled_templates import with_compiled_templates


class Counting(Environment):
    """Counts the templates that are compiled."""

    compiled = 0

    def compile(self, *given: Any, **more: Any) -> Any:
        self.compiled += 1
        return super().compile(*given, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "templates"
    made.mkdir()
    (made / "page.html").write_text("{% include 'part.html' %}!")
    (made / "part.html").write_text("Hello {{ name }}")
    return made


def opened(folder: Path, cache: Path) -> Counting:
    made = Counting(loader=FileSystemLoader(folder))
    with_compiled_templates(made, folder, cache)
    return made


def shown(made: Counting) -> str:
    return made.get_template("page.html").render(name="Ann")


def test_templates_are_compiled_once_for_all_starts(folder: Path, tmp_path: Path) -> None:
    first, second = (opened(folder, tmp_path / "cache") for _ in range(2))
    assert (first.compiled, second.compiled) == (2, 0)
    assert shown(first) == shown(second) == "Hello Ann!"


def test_a_template_that_changed_is_compiled_again(folder: Path, tmp_path: Path) -> None:
    opened(folder, tmp_path / "cache")
    (folder / "part.html").write_text("Good night {{ name }}")
    assert shown(opened(folder, tmp_path / "cache")) == "Good night Ann!"


def test_a_cache_that_is_not_there_and_one_that_is_broken_do_no_harm(folder: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.write_text("no folder")
    assert shown(opened(folder, nowhere)) == "Hello Ann!"
    opened(folder, tmp_path / "cache")
    for kept in (tmp_path / "cache").iterdir():
        kept.write_bytes(b"broken")
    assert shown(opened(folder, tmp_path / "cache")) == "Hello Ann!"
