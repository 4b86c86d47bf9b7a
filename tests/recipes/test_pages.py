"""The pages about recipes: what they quote is in the recipes, and their tables tell the statuses of the client."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_job_manifests import ENDS, RESTARTS

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.stem: path.read_text() for path in (ROOT / "docs").glob("*.md")}
RECIPES = {"argo": "argo/workflow.yaml", "skypilot": "skypilot/train.yaml"}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", PAGES[page], re.DOTALL | re.MULTILINE)


def holds(whole: Any, part: Any) -> bool:
    """Returns whether a part stands somewhere in the whole as it is."""
    if isinstance(part, dict) and isinstance(whole, dict) and all(holds(whole.get(key), part[key]) for key in part):
        return True
    inner = whole.values() if isinstance(whole, dict) else whole if isinstance(whole, list) else ()
    return whole == part or any(holds(one, part) for one in inner)


@pytest.mark.parametrize("page", list(RECIPES))
def test_what_a_page_quotes_stands_in_the_recipe(page: str) -> None:
    recipe = yaml.safe_load((ROOT / "deploy" / RECIPES[page]).read_text())
    quoted = blocks(page, "yaml")
    assert quoted
    assert [text for text in quoted if not holds(recipe, yaml.safe_load(text))] == []


@pytest.mark.parametrize("page", ["airflow", "ray"])
def test_the_code_of_a_page_uses_what_the_recipe_has(page: str) -> None:
    (code,) = blocks(page, "python")
    compile(textwrap.dedent(code), page, "exec")
    for module, names in re.findall(r"from (torchtriage_\w+) import (.+)", code):
        source = (ROOT / "deploy" / page / f"{module}.py").read_text()
        assert all(re.search(rf"^(def|class) {name}\b", source, re.MULTILINE) for name in names.split(", "))


@pytest.mark.parametrize("page", ["kubernetes-jobs", "skypilot", "client", "decisions-api", "kubeflow", "argo"])
def test_a_page_tells_the_statuses_of_decisions(page: str) -> None:
    stop, wait = ENDS
    (restart,) = set(RESTARTS)
    for status, word in ((restart, "restart"), (stop, "stop"), (wait, "wait")):
        assert re.search(rf"\b{status}\b[ (|]*{word}|{word}[^|\n]*\| {status}\b", PAGES[page]), (page, word)
