"""The module that an import did not find, and the package that installs it: a failed import in, facts out."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.answer.failure_facts.failure import Failure, is_users
from torchtriage.domain.fact import Fact
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.lazy_regex import lazy_regex

PACKAGES = "packages"  # the lists of the vocabulary
OWN_MODULES = "own-modules"
_MISSING = lazy_regex(r"No module named '?([A-Za-z_][\w.]*)")


def missing_module(failure: Failure) -> Iterator[Fact]:
    """`module` that was not found; `package` by which pip installs it, where that is known, else `own_module` where a
    project of the user's own is likely: the module's first part is a folder above the script, or is called so."""
    found = _MISSING.search(failure.raised.message if failure.raised else failure.finding.event.text)
    if found is None:
        return
    module = found[1].rstrip(".")
    root = module.partition(".")[0]
    yield failure.fact("module", module)
    vocabulary = failure.reading.matcher.patterns.vocabulary
    package = package_of(vocabulary, module) or package_of(vocabulary, root)
    if package is not None:
        yield failure.fact("package", package)
    elif root in vocabulary.words(OWN_MODULES) or any(f"/{root}/" in f"/{path}" for path in _own(failure)):
        yield failure.fact("own_module", module)


def package_of(vocabulary: Vocabulary, module: str) -> str | None:
    """-> the package by which pip installs a module, where that is known."""
    return next((name for name, modules in vocabulary.lists[PACKAGES].groups if module in modules), None)


def _own(failure: Failure) -> list[str]:
    """-> the files of the user's frames."""
    raised = failure.raised
    return [frame.file.replace("\\", "/") for frame in (raised.frames if raised else ()) if is_users(frame)]
