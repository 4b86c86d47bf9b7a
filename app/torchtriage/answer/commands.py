"""Commands that people paste: an entry's text with places (`{host}`) in, the text with what the log tells out.

A log is written by strangers, and a shell does what they write. So this is the only place where a value gets into a
command, and a value that a shell could take for more than a word withholds the whole command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from torchtriage.domain.host import host_name
from torchtriage.lazy_regex import lazy_regex

# The places that are quoted where they have to be.
PATHS = frozenset({"path", "file", "script", "checkpoint", "folder", "other_path", "library_file", "named_log"})
# Commands that are whole: the engine made them of words that it knows.
WHOLE = frozenset({"{advice_command}"})
# The place for the whole command in a template that starts it elsewhere, at its end.
_COMMAND = "{command}"
# Code that the vocabulary tells, not the log.
_CODE = frozenset({"local_rank_code", "unused_option"})
# What entries leave room for in their commands.
_PLACES = ("host", "rank", "pid", "job", "node", "master", "port", "pci", "name", "path", "machine")
_UNTOLD = {name: name.upper() for name in _PLACES}
_OF_HOSTS = frozenset({"host", "node", "master", "name"})
# Means nothing to any shell, in quotes or out of them; `=` at the beginning does to zsh, `-` to the program.
_PLAIN = lazy_regex(r"(?![-=])[\w.:/@%+,=-]{1,253}", re.ASCII)
# What a print above a line of Python may show of it: names, entries of them and sums, never a call.
_SHOWN = frozenset({"code_names", "collection", "index", "operand", "argument"})
# Hosts as Slurm writes them (`gpu[01-04,7]`), in single quotes only.
_HOST_LIST = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9_.,\[\]-]{0,1000}")
_HOST_LISTS = frozenset({"nodes"})
_EXPRESSION = lazy_regex(r"\w[\w.]{0,80}(?:\[[\w. +*-]{1,40}\])?(?: ?[-+*,] ?\w[\w.]{0,80}){0,4}", re.ASCII)
_LONGEST_PATH = 1024  # characters
_PLACE = lazy_regex(r"\{([a-z_]+)\}")
_OPEN_PLACE = lazy_regex(r"\{([a-z_]+)\}|<[a-z][\w .-]*>")  # with what an entry itself leaves to the reader
# Inside of these a quoted word would end the quotes; what is in a comment is no word.
_QUOTED = lazy_regex(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<!\S)#[^\n]*")
# What these are given is read by a shell once more, without the quotes that the first one took off.
_READ_TWICE = lazy_regex(r"\b(?:ssh|pdsh|clush|eval|watch|xargs)\b|\s-c\s|`")


def commands(templates: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """-> the commands that can be filled safely, in their order; the others are left out.

    What the log does not tell is left as `HOST` for the reader, other words in braces (an awk program's) as they are.
    A path is quoted where it has to be.
    """
    return tuple(told for told in (_command(template, values) for template in templates) if told is not None)


def run_line(template: str, values: Mapping[str, str]) -> str | None:
    """-> the command of a step; None where a slot is not filled, or its value could do harm."""
    if not all(name in values for name in _PLACE.findall(template)):
        return None
    if template in WHOLE:
        return values[template.strip("{}")]
    return _command(template, values)


def on_hosts(command: str, start: str | None, values: Mapping[str, str]) -> str:
    """-> the command as `start`, a template of the vocabulary, starts it on each host of the job; as it is where there
    is no such template, or a value in it is not safe."""
    started = run_line(start.replace(_COMMAND, ""), values) if start else None
    return f"{started}{shlex.quote(command)}" if started is not None else command


def filled(text: str, values: Mapping[str, str]) -> str:
    """-> a sentence with its places filled; what is not told, or could do harm in a command, is left as `HOST`."""
    return _PLACE.sub(lambda found: _word(found[1], values) or _UNTOLD.get(found[1], found[0]), text)


def general(text: str, captured: Iterable[str] = ()) -> str:
    """-> a command or a sentence as an entry shows it to anyone: `{host}` is HOST, and so is what it has `captured`."""
    return filled(text, {name: name.upper() for name in captured})


def general_parts(text: str, captured: Iterable[str] = ()) -> tuple[tuple[str, bool], ...]:
    """-> what `general` gives in pieces, and of each whether the reader has to put something else in its place."""
    known = _UNTOLD | {name: name.upper() for name in captured}
    parts, done = [], 0
    for place in (found for found in _OPEN_PLACE.finditer(text) if not found[1] or found[1] in known):
        parts += [(text[done : place.start()], False), (known.get(place[1] or "", place[0]), True)]
        done = place.end()
    return tuple(part for part in [*parts, (text[done:], False)] if part[0])


def is_plain(text: str) -> bool:
    """-> whether a shell takes a text for one word and nothing else, in quotes and out of them."""
    return _PLAIN.fullmatch(text) is not None


def _command(template: str, values: Mapping[str, str]) -> str | None:
    if "{" not in template:
        return template
    quoted = [found.span() for found in _QUOTED.finditer(template)]
    shows = template.startswith("print(")
    read_twice = _READ_TWICE.search(template) is not None
    parts, done = [], 0
    for place in _PLACE.finditer(template):
        name = place[1]
        if name in values:
            bare = not read_twice and not any(start < place.start() < end for start, end in quoted)
            word = (
                (values[name] if name in _CODE else _word(name, values))
                or (_shown(name, values) if shows else None)
                or (_host_list(name, values) if f"'{place[0]}'" in template else None)
                or (_path(values[name]) if name in PATHS and bare else None)
            )
            if word is None:
                return None
        else:
            word = _UNTOLD.get(name, place[0])
        parts += [template[done : place.start()], word]
        done = place.end()
    return "".join([*parts, template[done:]])


def _word(name: str, values: Mapping[str, str]) -> str | None:
    """-> the value of a place where it may stand anywhere in a command."""
    value = values.get(name, "")
    safe = is_plain(value) and (name not in _OF_HOSTS or host_name(value) is not None)
    return value if safe else None


def _shown(name: str, values: Mapping[str, str]) -> str | None:
    """-> a part of the user's line as it can be printed above it."""
    value = values[name]
    return value if name in _SHOWN and _EXPRESSION.fullmatch(value) else None


def _host_list(name: str, values: Mapping[str, str]) -> str | None:
    return values[name] if name in _HOST_LISTS and _HOST_LIST.fullmatch(values[name]) else None


def _path(path: str) -> str | None:
    """-> a path in quotes; None where it is none that a person would recognise, or would be taken for an option."""
    shown = 0 < len(path) <= _LONGEST_PATH and path.isprintable() and not path.startswith("-")
    return shlex.quote(path) if shown else None
