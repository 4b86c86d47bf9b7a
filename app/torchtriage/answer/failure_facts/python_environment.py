"""The environment that the program ran in: the frameworks in its frames, and its Python version and location. Also the
module that an import did not find, and the package that provides it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.frames import library_of, package_of
from torchtriage.domain.event import Frame
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex

FRAMEWORKS = "frameworks"  # the name of a list in the vocabulary
OWN_MODULES = "own-modules"  # the name of a list in the vocabulary
BUILD_ENVIRONMENTS = "build-environments"  # the name of a list in the vocabulary
_MISSING = lazy_regex(r"No module named '?([A-Za-z_][\w.]*)")
_LACKS_NAME = lazy_regex(r"^(?:cannot import name '\w+' from|module) '(\w+)[\w.]*'")
_LACKS_MODULE = lazy_regex(r"^No module named '(\w+)\.[\w.]+'")
_LACKING_PACKAGE = lazy_regex(r"No module named '?([A-Za-z_]\w*)\.|cannot import name '?\w+'? from '?([A-Za-z_]\w*)")
_CIRCULAR = lazy_regex(r"partially initialized|circular import|unknown location")
# Debian's own Python in /usr/bin installs packages below dist-packages: such a path is no environment's prefix.
_PREFIX = lazy_regex(r"^(.{0,300}?)[/\\](?:lib|Lib|lib64)[/\\](?:python3[\d.]*[/\\](?!dist-packages)|site-packages)")
_WINDOWS_PATH = lazy_regex(r"[A-Za-z]:[\\/]")
_WINDOWS = "Windows"
_VERSION = lazy_regex(r"[/\\]python(3\.\d{1,2})(?:\.\d+)?[/\\]|[/\\]Python(3)(\d{1,2})[/\\]")


def python_environment(failure: Failure) -> Iterator[Fact]:
    """Yields `frameworks` (those with files in the traceback, such as `DDP, Trainer`). From the path of a library it
    yields `environment` (the prefix of the Python environment, `/home/x/miniconda3/envs/y`) and `python_version`
    (3.11). `operating_system` is Windows if the files have paths of Windows. A temporary environment, in which an
    installer builds a package, is not the job's environment."""
    frames_text = " ".join(f"{frame.file} {frame.code}" for frame in _frames(failure)).replace("\\", "/")
    vocabulary = failure.reading.matcher.patterns.vocabulary
    if names := [
        item.name for item in vocabulary.patterns(FRAMEWORKS) if item.name and re.search(item.exact, frames_text)
    ]:
        yield failure.fact("frameworks", ", ".join(names))
    paths = [frame.file for frame in reversed(_frames(failure)) if not failure.is_user_frame(frame)]
    paths += re.findall(r"[/\\][^\s'\"():]{1,300}?site-packages", failure.raised.message if failure.raised else "")
    deleted = [item.exact for item in vocabulary.patterns(BUILD_ENVIRONMENTS)]
    kept = (path for path in paths if not any(re.search(pattern, path) for pattern in deleted))
    # A venv contains its own packages, but Python's modules belong to the interpreter that the venv was created from.
    installed_first = sorted(kept, key=lambda path: "site-packages" not in path)
    prefixes = (at[1] for path in installed_first if (at := _PREFIX.match(path)))
    # ~/.local contains what `pip install --user` installed, for any Python: no Python is in it.
    environment = next((prefix for prefix in prefixes if prefix and not prefix.endswith("/.local")), None)
    if environment is not None:
        yield failure.fact("environment", environment)
    if any(_WINDOWS_PATH.match(frame.file) for frame in _frames(failure)):
        yield failure.fact("operating_system", _WINDOWS)
    version = next((at[1] or f"{at[2]}.{at[3]}" for path in paths if (at := _VERSION.search(path))), None)
    if version is not None:
        yield failure.fact("python_version", version)


def _frames(failure: Failure) -> list[Frame]:
    return [frame for raised in failure.finding.event.chain for frame in raised.frames]


def missing_module(failure: Failure) -> Iterator[Fact]:
    """Yields `module`, the module that was not found, and facts about it.

    `package` is the package that pip installs it with, if known. Otherwise `own_module` means that it probably belongs
    to the user's own project: its first part is a common name of such modules, or a folder above one of the user's
    files. `own_root` is the folder that contains it. `damaged_package` is a package in which one file imports a file or
    name that does not exist. `imported_from` is the folder from which Python imported the package that lacks a module
    or name (`/home/x/torch_npu`), and `imported_above` is its parent folder, which is on the path.
    """
    yield from _damaged_package(failure)
    yield from _imported_from(failure)
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
    elif root in vocabulary.words(OWN_MODULES) or any(f"/{root}/" in f"/{path}" for path in _user_files(failure)):
        yield failure.fact("own_module", module)
        roots = (path.rpartition(f"/{root}/")[0] for path in _user_files(failure) if f"/{root}/" in path)
        if folder := next((each for each in roots if each), None):
            yield failure.fact("own_root", folder)


def _damaged_package(failure: Failure) -> Iterator[Fact]:
    raised = failure.raised
    if raised is None or _CIRCULAR.search(raised.message):
        return
    found = _LACKS_NAME.search(raised.message) or _LACKS_MODULE.search(raised.message)
    files = [frame.file for frame in failure.frames_without_lookups if not frame.file.startswith("<frozen ")]
    if found is not None and files and library_of(files[-1]) == found[1]:
        vocabulary = failure.reading.matcher.patterns.vocabulary
        yield failure.fact("damaged_package", package_of(vocabulary, found[1]) or found[1])


def _imported_from(failure: Failure) -> Iterator[Fact]:
    raised = failure.raised
    found = _LACKING_PACKAGE.search(raised.message) if raised else None
    root = next(filter(None, found.groups()), "") if found else ""
    files = [frame.file.replace("\\", "/") for frame in raised.frames] if raised and root else []
    files = [file for at, file in enumerate(files) if at or file.endswith("/__init__.py")]  # not a script's own folder
    folders = (at[0] for file in reversed(files) if (at := re.match(rf"(?:.{{0,400}}/)?{root}(?=/)", file)))
    folder = next(folders, None)
    if folder is not None and "<" not in folder:
        yield failure.fact("imported_from", folder)
        yield failure.fact(
            "imported_above", folder.removesuffix(root).rstrip("/") or ("/" if folder[0] == "/" else ".")
        )


def _user_files(failure: Failure) -> list[str]:
    """Returns the files of the user's frames."""
    raised = failure.raised
    return [
        frame.file.replace("\\", "/") for frame in (raised.frames if raised else ()) if failure.is_user_frame(frame)
    ]
