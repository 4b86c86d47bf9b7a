"""Rules of this repository that no linter checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import torchtriage
from scripts.mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "app" / "torchtriage").rglob("*.py"))
LOCKS = [ROOT / f"requirements{name}.lock" for name in ("", "-image", "-dev")]


def test_the_slowest_tests_begin_first(request: pytest.FixtureRequest) -> None:
    later = [item.get_closest_marker("first") is None for item in request.session.items]
    assert later == sorted(later)
    targets = re.findall(r"pytest -n .*", (ROOT / "Makefile").read_text())
    assert len(targets) == 2
    together = re.search(r"^TOGETHER := .*", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert together
    assert "--no-loadscope-reorder" in together[0]
    # Otherwise pytest-xdist starts with the modules that have most tests.
    assert all("$(TOGETHER)" in target for target in targets)


def test_every_mutant_changes_one_existing_line() -> None:
    files = {mutant: (ROOT / "app" / "torchtriage" / mutant.file).read_text() for mutant in MUTANTS}
    assert [mutant for mutant, code in files.items() if code.count(mutant.old) != 1 or mutant.new == mutant.old] == []
    assert [name for mutant in MUTANTS for name in mutant.tests.split() if not (ROOT / "tests" / name).exists()] == []


def test_code_that_catches_every_exception_says_why() -> None:
    """Exceptions that are raised again need no reason."""
    blind = re.compile(r"^\s*except( \(?(Base)?Exception\b|:).*", re.MULTILINE)
    places = [found[0] for path in SOURCES for found in blind.finditer(path.read_text())]
    assert not [line for line in places if "BaseException" not in line and not re.search(r"#.* \w+ \w+", line)]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_a_lock_names_no_place_to_download_from(path: Path) -> None:
    assert not re.findall(r"^--|://|file:|/(?:home|root|tmp|opt|usr)/", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_has_one_version_and_hashes(path: Path) -> None:
    packages = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE))
    for package in packages:
        assert re.match(r"[a-z0-9-]+(\[[a-z,]+\])?==\S+ ", package), package.splitlines()[0]
        assert "--hash=sha256:" in package, package.splitlines()[0]


def test_each_lock_contains_the_previous_one() -> None:
    runtime, image, development = (set(re.findall(r"^\S+==\S+", path.read_text(), re.MULTILINE)) for path in LOCKS)
    assert runtime < image < development


def test_every_make_target_is_phony_and_has_a_line_of_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert targets == set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert targets == set(phony[1].split())


def test_pre_commit_runs_the_steps_of_make_check() -> None:
    makefile = (ROOT / "Makefile").read_text()
    check = re.search(r"^check:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert check is not None
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert local["repo"] == "local"
    assert [hook["entry"] for hook in local["hooks"]] == check[1].replace("$(BIN)", ".venv/bin").strip().split("\n\t")


def test_the_changelog_knows_this_version() -> None:
    assert f"## {torchtriage.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_links_between_documents_have_targets() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "knowledge_base").glob("*.md")]
    dead = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())
        if not (document.parent / target).exists()
    ]
    assert not dead


def test_the_index_lists_every_decision_by_its_title() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    for page in sorted(folder.glob("0*.md")):
        title = page.read_text().splitlines()[0].removeprefix("# ")
        assert f"[{page.name[:4]}]({page.name}) | {title} |" in index
