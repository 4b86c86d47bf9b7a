"""Where the exception was raised: the user's innermost line, who called it, and the library below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from torchtriage.answer.failure_facts.failure import Failure, union_pattern
from torchtriage.answer.failure_facts.python_statement import shown
from torchtriage.domain.event import Frame
from torchtriage.domain.fact import Fact
from torchtriage.domain.vocabulary import Vocabulary
from torchtriage.lazy_regex import lazy_regex

PACKAGES = "packages"  # the name of a list in the vocabulary
WITHOUT_PLACE = "frames-without-place"  # the name of a list in the vocabulary
_PACKAGE = lazy_regex(r"(?:site|dist)-packages[/\\]([A-Za-z_]\w*)")
_STANDARD = lazy_regex(r"[/\\]python3(?:\.\d+)?[/\\](?!site-packages|dist-packages)([a-z_]\w*)")
_CYTHON = lazy_regex(r"^([a-z]\w*)/(?:[\w/]+\.)p(?:yx|xi|xd)")
_UNNAMED = lazy_regex(r"<\w+>")  # <module>, <lambda>, <listcomp>
_CELL = lazy_regex(r"^<|[/\\]ipykernel_\d+[/\\]\d+\.py$")  # a notebook cell: there is no file that a command could read
_PARTS = 3  # parts of an absolute path that a sentence shows
_RAISES = lazy_regex(r"raise(?: \w[\w.]*(?:\(|$)| *$)")  # a raise whose message carries all the information
_SHOWN_CALLS = 4


def frames(failure: Failure) -> Iterator[Fact]:
    """Yields facts about the frames.

    - `where` (file:line of the user's innermost frame), `file`, `line_number`, `function`, `code`; `raise_code` if that
      line only raises, because the message says more. `script`: the user's outermost file. Neither file for a cell of a
      notebook. `caller`, `caller_code` and `caller_function`: the user's frame above.
    - `callee`, `library`, `library_frame`, `library_file`, `calls` (`load → _open_file`) of what it called, and
      `library_package`, the name by which pip knows it. If no frame is the user's: `library_caller`,
      `library_caller_code` and `library_caller_function` of the library that called that one.
    - `forward_where`, `forward_code` and `forward_function`: the call whose backward failed, from anomaly mode.
    """
    all_of_it = failure.frames_without_lookups
    inside = [place for place, frame in enumerate(all_of_it) if failure.is_user_frame(frame)]
    own = [all_of_it[place] for place in inside] or _users_frames(failure)
    if own:
        yield from _of_frame(failure, own[-1], "where", "code", "function")
        yield failure.fact("line_number", own[-1].line)
        files = (("file", own[-1].file), ("script", own[0].file))
        yield from (failure.fact(name, file) for name, file in files if not _CELL.search(file))
    forward = [frame for frame in (failure.raised.forward if failure.raised else ()) if frame.file]
    if users := [frame for frame in forward if failure.is_user_frame(frame)]:
        yield from _of_frame(failure, users[-1], "forward_where", "forward_code", "forward_function")
    if len(own) > 1:
        yield from _of_frame(failure, own[-2], "caller", "caller_code", "caller_function")
    below = all_of_it[inside[-1] + 1 :] if inside else all_of_it
    yield from _of_libraries(failure, below, alone=not own)


def _of_libraries(failure: Failure, below: Sequence[Frame], alone: bool) -> Iterator[Fact]:
    """Yields the facts about the frames below the user's code. `alone`: no frame is the user's."""
    if not below:
        return
    vocabulary = failure.reading.matcher.patterns.vocabulary
    placed = _up_to_origin(below, alone, vocabulary)
    last = (placed or below)[-1]
    if placed:
        if not _UNNAMED.fullmatch(placed[0].function):
            yield failure.fact("callee", placed[0].function)
        if alone:  # An installed package says more than Python's own modules below it.
            last = next((frame for frame in reversed(placed) if _PACKAGE.search(frame.file)), last)
        yield from _of_frame(failure, last, "library_frame", "library_code", "library_function")
        if alone and (caller := _caller(placed[: placed.index(last)], last, vocabulary)) is not None:
            yield from _of_frame(failure, caller, "library_caller", "library_caller_code", "library_caller_function")
        yield failure.fact("library_file", last.file)
    if library := library_of(last.file):
        yield failure.fact("library", library)
    if installed := _PACKAGE.search(last.file):
        yield failure.fact("library_package", package_of(vocabulary, installed[1]) or installed[1])
    names = list(dict.fromkeys(frame.function for frame in below if not _UNNAMED.fullmatch(frame.function)))
    if len(names) > 1:
        shortened = names if len(names) <= _SHOWN_CALLS else [*names[:2], "…", names[-1]]
        yield failure.fact("calls", " → ".join(shortened))


def _up_to_origin(below: Sequence[Frame], alone: bool, vocabulary: Vocabulary) -> Sequence[Frame]:
    """Returns the frames up to the last one that shows where the failure began; none if all belong to a launcher."""
    end = len(below)
    while end and _hides_origin(below[end - 1], vocabulary):
        end -= 1
    only_started = alone and end < len(below) and not any(_PACKAGE.search(frame.file) for frame in below[:end])
    return () if only_started else below[:end]


def _hides_origin(frame: Frame, vocabulary: Vocabulary) -> bool:
    return union_pattern(vocabulary.patterns(WITHOUT_PLACE)).search(f"{frame.file}:{frame.function}") is not None


def _caller(above: Sequence[Frame], last: Frame, vocabulary: Vocabulary) -> Frame | None:
    """Returns the innermost frame of another package than that of `last`; if there is none, the outermost frame of
    another file. Python's own modules do not count."""
    package = library_of(last.file)
    others = [
        frame
        for frame in above
        if frame.file.endswith(".py")
        and not _STANDARD.search(frame.file)
        and not _UNNAMED.fullmatch(frame.function)
        and not _hides_origin(frame, vocabulary)
    ]
    other = next((frame for frame in reversed(others) if library_of(frame.file) != package), None)
    same = (frame for frame in others if frame.file != last.file and frame.function != last.function)
    return other or next(same, None)


def _users_frames(failure: Failure) -> list[Frame]:
    """Returns the user's frames of the exception that a library raised from this one, because they led to it. The next
    exception of the chain is preferred, unless its line calls nothing: then it was cut, or other ranks' lines are mixed
    into it."""
    chain = failure.finding.event.chain
    place = next((place for place, raised in enumerate(chain) if raised is failure.raised), len(chain) - 1)
    chains = (raised.frames for raised in (*chain[place + 1 :], *reversed(chain[: place + 1])))
    users = [[frame for frame in frames if failure.is_user_frame(frame) and frame.file] for frames in chains]
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
    """Returns the end of a path, enough for a person to recognize the file: the part after site-packages, if there is
    one."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            return "/".join(parts[parts.index(folder) + 1 :])
    return "/".join(parts[-_PARTS:]) if len(parts) - (parts[:1] == ("/",)) > _PARTS else path


def library_of(path: str) -> str | None:
    """Returns the package that a library file belongs to, or None for a user's file."""
    found = _PACKAGE.search(path) or _STANDARD.search(path) or _CYTHON.search(path)
    return found[1] if found else None


def package_of(vocabulary: Vocabulary, module: str) -> str | None:
    """Returns the package that pip installs a module with, if known."""
    return next((name for name, modules in vocabulary.lists[PACKAGES].groups if module in modules), None)
