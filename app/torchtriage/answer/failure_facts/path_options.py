"""Finds the option that gave the path in the message, from the options that the program and its launcher printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.answer.failure_facts.frames import short_path
from torchtriage.answer.failure_facts.printed_values import OF_A_CALL
from torchtriage.domain.fact import Fact
from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex

_MESSAGE = 2000  # characters of the message that are searched for paths
_PATH = lazy_regex(r"['\"`]([^'\"`\n]{3,400})['\"`]|(?<![^\s(=:])((?:[A-Za-z]:)?[\w.~+-]*[/\\][^\s'\"`,;()]{2,400})")
_IS_PATH = lazy_regex(r"[/\\]|^[\w-]+(?:\.[\w-]+)*\.[A-Za-z]\w{1,11}$")
_SEVERAL_WORDS = lazy_regex(r"\w[_.-]\w")
_MAX_PATHS, _MAX_FINDINGS, _MAX_FOLDERS = 3, 16, 8
_MIN_PARTS = 2  # parts of a folder that can identify its option: `/data` contains too much


class _Option(NamedTuple):
    name: str
    line: Line


def path_options(failure: Failure) -> Iterator[Fact]:
    """Yields `path_option` (`--resume`, `model.weights`), the option whose value is the path in the message. If there
    is none, it yields `path_in_code`, the user's line that contains the path. If there is none either, it yields
    `folder_option`, an option whose value is a parent folder of the path, and `folder_given`, that value."""
    message = failure.raised.message[:_MESSAGE] if failure.raised else ""
    paths = _paths(message)
    lines = _lines(failure, message) if paths else []
    whole = "\n".join(line.text for line in lines)
    for path in paths:
        if path in whole and (option := _option_of(path, lines, failure)):
            yield failure.fact("path_option", option.name, line=option.line)
            return
    users = [frame for frame in reversed(failure.frames) if failure.is_user_frame(frame)]
    for frame in (frame for path in paths for frame in users if f'"{path}"' in frame.code.replace("'", '"')):
        yield failure.fact("path_in_code", f"{short_path(frame.file)}:{frame.line}")
        return
    for folder in (folder for path in paths for folder in _folders(path)):
        if folder in whole and (option := _option_of(folder, lines, failure)):
            yield failure.fact("folder_option", option.name, line=option.line)
            yield failure.fact("folder_given", folder, line=option.line)
            return


def _paths(message: str) -> list[str]:
    found = (at[1] or at[2].rstrip(".:") for at in _PATH.finditer(message))
    return list(dict.fromkeys(path for path in found if _IS_PATH.search(path)))[:_MAX_PATHS]


def _folders(path: str) -> Iterator[str]:
    """Yields the parent folders of a path, nearest first."""
    parts = path.split("/")
    for count in range(len(parts) - 1, 0, -1)[:_MAX_FOLDERS]:
        if sum(part not in ("", ".", "..") for part in parts[:count]) >= _MIN_PARTS:
            yield "/".join(parts[:count])


def _option_of(path: str, lines: list[Line], failure: Failure) -> _Option | None:
    """Returns the option whose value is the path. A command line is preferred; else the last printed value counts."""
    printed = None
    for line in reversed(lines):
        text = failure.shown(line.text) if path in line.text else ""
        for at in _form(path).finditer(text):
            if at["flag"]:
                return _Option(at["flag"] + at["name"], line)
            a_setting = _SEVERAL_WORDS.search(at["name"]) if at["bare"] else not OF_A_CALL.search(text[: at.start()])
            if a_setting and printed is None:
                printed = _Option(at["name"], line)
    return printed


def _lines(failure: Failure, message: str) -> list[Line]:
    """Returns the lines printed above the failure, and the launchers' lines below it that show the command."""
    own = failure.finding
    below = [one for one in failure.choice.live[:_MAX_FINDINGS] if own.position < one.position]
    lines = [*(line for one in below for line in one.event.lines), *failure.printed]
    return [line for line in lines if line.text.strip() not in message]


@lru_cache(maxsize=64)
def _form(path: str) -> re.Pattern[str]:
    """Returns a regex for `--name path`, `--name=path`, `'--name', 'path'`, `name='path'` and `"name": "path"`. The
    group `bare` matches the separator in `name: path`, `name = path` and `name ...... path`."""
    name = r"(?P<name>[A-Za-z][\w-]{0,60}(?:\.[\w-]{1,60}){0,4})"
    of_flag = r"(?(flag)(?:=|\s{1,4}|['\"],\s{0,4})['\"]?|(?!))"
    quoted = r"['\"]?\s{0,3}[=:]\s{0,20}['\"]"
    bare = r"(?P<bare>\s{0,40}[=:]\s{0,40}|\s{0,4}\.{2,60}\s{0,4})"
    end = r"/?(?=['\",;)}\]\s]|$)"
    return re.compile(rf"(?<![\w./\\-])(?P<flag>--?)?{name}(?:{of_flag}|{quoted}|{bare}){re.escape(path)}{end}")
