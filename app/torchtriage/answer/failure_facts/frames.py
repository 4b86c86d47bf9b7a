"""Where the exception was raised: the user's innermost line, who called it, and the library below it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.python_statement import shown
from torchtriage.domain.event import Frame
from torchtriage.domain.fact import Fact
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.lazy_regex import lazy_regex

PACKAGES = "packages"  # the list of the vocabulary
_PACKAGE = lazy_regex(r"(?:site|dist)-packages[/\\]([A-Za-z_]\w*)")
_STANDARD = lazy_regex(r"[/\\]python3(?:\.\d+)?[/\\](?!site-packages|dist-packages)([a-z_]\w*)")
_CYTHON = lazy_regex(r"^([a-z]\w*)/(?:[\w/]+\.)p(?:yx|xi|xd)")
_UNNAMED = lazy_regex(r"<\w+>")  # <module>, <lambda>, <listcomp>
_CELL = lazy_regex(r"^<|[/\\]ipykernel_\d+[/\\]\d+\.py$")  # of a notebook: no file that a command could read
_PARTS = 3  # of an absolute path that a sentence names
_RAISES = lazy_regex(r"raise(?: \w[\w.]*(?:\(|$)| *$)")  # what the message says is raised here, no more
_SHOWN_CALLS = 4


def frames(failure: Failure) -> Iterator[Fact]:
    """`where` (file:line of the user's innermost frame), `file`, `line_number`, `function`, `code` (`raise_code` where
    that line only raises; the message says more); `script`, the user's outermost file (neither for a notebook's
    cells); `caller`, `caller_code` and `caller_function` of the user's frame above; `callee`, `library`,
    `library_frame`, `library_file` and `calls` (`load → _open_file`) of what it called, with `library_package`, by
    which pip knows it, where it was installed; `forward_where`, `forward_code` and `forward_function` of the call whose
    backward failed, where anomaly mode tells it."""
    all_of_it = failure.asking_frames
    inside = [place for place, frame in enumerate(all_of_it) if failure.is_users(frame)]
    own = [all_of_it[place] for place in inside] or _users_frames(failure)
    if own:
        yield from _of_frame(failure, own[-1], "where", "code", "function")
        yield failure.fact("line_number", own[-1].line)
        files = (("file", own[-1].file), ("script", own[0].file))
        yield from (failure.fact(name, file) for name, file in files if not _CELL.search(file))
    forward = [frame for frame in (failure.raised.forward if failure.raised else ()) if frame.file]
    if users := [frame for frame in forward if failure.is_users(frame)]:
        yield from _of_frame(failure, users[-1], "forward_where", "forward_code", "forward_function")
    if len(own) > 1:
        yield from _of_frame(failure, own[-2], "caller", "caller_code", "caller_function")
    below = all_of_it[inside[-1] + 1 :] if inside else all_of_it
    if below:
        if not _UNNAMED.fullmatch(below[0].function):
            yield failure.fact("callee", below[0].function)
        last = below[-1]
        if not own:  # Where no frame is the user's, an installed package says more than Python's own modules below it.
            last = next((frame for frame in reversed(below) if _PACKAGE.search(frame.file)), last)
        yield from _of_frame(failure, last, "library_frame", "library_code", "library_function")
        yield failure.fact("library_file", last.file)
        if library := library_of(last.file):
            yield failure.fact("library", library)
        if installed := _PACKAGE.search(last.file):
            vocabulary = failure.reading.matcher.patterns.vocabulary
            yield failure.fact("library_package", package_of(vocabulary, installed[1]) or installed[1])
        names = list(dict.fromkeys(frame.function for frame in below if not _UNNAMED.fullmatch(frame.function)))
        if len(names) > 1:
            shortened = names if len(names) <= _SHOWN_CALLS else [*names[:2], "…", names[-1]]
            yield failure.fact("calls", " → ".join(shortened))


def _users_frames(failure: Failure) -> list[Frame]:
    """-> the user's frames of the exception that a library raised of this one: they led to it. The next one of the
    chain comes first, unless its line calls nothing: it was cut, or other ranks' lines stand in it."""
    chain = failure.finding.event.chain
    place = next((place for place, raised in enumerate(chain) if raised is failure.raised), len(chain) - 1)
    chains = (raised.frames for raised in (*chain[place + 1 :], *reversed(chain[: place + 1])))
    users = [[frame for frame in frames if failure.is_users(frame) and frame.file] for frames in chains]
    found = [frames for frames in users if frames]
    calling = (frames for frames in found if frames[-1].code and not _RAISES.match(frames[-1].code))
    return next(calling, found[0] if found else [])


def _of_frame(failure: Failure, frame: Frame, place: str, code: str, function: str) -> Iterator[Fact]:
    yield failure.fact(place, f"{short_path(frame.file)}:{frame.line}")
    line = shown(frame.code)
    if line and not (code == "library_code" and _RAISES.match(line)):
        yield failure.fact("raise_code" if code == "code" and _RAISES.match(line) else code, line)
    if frame.function and not _UNNAMED.fullmatch(frame.function):
        yield failure.fact(function, frame.function)


def short_path(path: str) -> str:
    """-> the end of a path by which a person knows the file; behind site-packages, what is left of it."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            return "/".join(parts[parts.index(folder) + 1 :])
    return "/".join(parts[-_PARTS:]) if len(parts) - (parts[:1] == ("/",)) > _PARTS else path


def library_of(path: str) -> str | None:
    """-> the package that a file of a library belongs to; None for a user's file."""
    found = _PACKAGE.search(path) or _STANDARD.search(path) or _CYTHON.search(path)
    return found[1] if found else None


def package_of(vocabulary: Vocabulary, module: str) -> str | None:
    """-> the package by which pip installs a module, where that is known."""
    return next((name for name, modules in vocabulary.lists[PACKAGES].groups if module in modules), None)
