"""Fills the commands that people paste. Input: an entry's text with placeholders (`{host}`) and values from the log.

Logs are written by strangers, and a shell runs what they contain. So this is the only module that puts a value into a
command. If a shell could read a value as more than one word, the whole command is withheld.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from torchtriage.answer.templates import SLOT
from torchtriage.domain.host import host_name
from torchtriage.lazy_regex import lazy_regex

# Placeholders that are quoted if necessary.
PATHS = frozenset({"path", "file", "script", "checkpoint", "folder", "other_path", "library_file", "named_log"})
# Whole commands, which the engine made from known words.
WHOLE = frozenset({"{advice_command}"})
# The placeholder at the end of a template for the whole command that the template starts elsewhere.
_COMMAND = "{command}"
# Code from the vocabulary, not from the log.
_CODE = frozenset({"local_rank_code", "unused_option"})
# The placeholders that entries may use in their commands.
_PLACES = ("host", "rank", "pid", "job", "node", "master", "port", "pci", "name", "path", "machine")
_PLACEHOLDER_NAMES = {name: name.upper() for name in _PLACES}
_OF_HOSTS = frozenset({"host", "node", "master", "name"})
# Characters without a meaning in any shell, in or out of quotes. A leading `=` means something to zsh, and a leading
# `-` to the program.
_PLAIN = lazy_regex(r"(?![-=])[\w.:/@%+,=-]{1,253}", re.ASCII)
# What a print statement above a line of Python may show of it: names, their items and sums, but never a call.
_SHOWN = frozenset({"code_names", "collection", "index", "operand", "argument"})
# Host lists in Slurm's notation (`gpu[01-04,7]`), only in single quotes.
_HOST_LIST = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9_.,\[\]-]{0,1000}")
_HOST_LISTS = frozenset({"nodes"})
_EXPRESSION = lazy_regex(r"\w[\w.]{0,80}(?:\[[\w. +*-]{1,40}\])?(?: ?[-+*,] ?\w[\w.]{0,80}){0,4}", re.ASCII)
_MAX_PATH_LENGTH = 1024  # characters
_OPEN_PLACE = lazy_regex(r"\{([a-z_]+)\}|<[a-z][\w .-]*>")  # also the placeholders that the entry leaves for the reader
# A quoted word would end these quotes. Text in a comment is no word of the command.
_QUOTED = lazy_regex(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<!\S)#[^\n]*")
# The shell reads the arguments of these commands a second time, without the first quotes.
_READ_TWICE = lazy_regex(r"\b(?:ssh|pdsh|clush|eval|watch|xargs)\b|\s-c\s|`")


def commands(templates: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the commands that can be filled safely, in their order. The others are left out.

    A placeholder without a value in the log becomes a word such as `HOST` for the reader. Other words in braces, as in
    an awk program, are kept. A path is quoted if necessary.
    """
    return tuple(command for command in (_command(template, values) for template in templates) if command is not None)


def run_line(template: str, values: Mapping[str, str]) -> str | None:
    """Returns the command of a step, or None if a slot has no value or its value is not safe."""
    if not all(name in values for name in SLOT.findall(template)):
        return None
    if template in WHOLE:
        return values[template.strip("{}")]
    return _command(template, values)


def on_hosts(command: str, start: str | None, values: Mapping[str, str]) -> str:
    """Returns the command that runs `command` on each host of the job. `start` is a template of the vocabulary. The
    command is returned unchanged if there is no template or a value is not safe."""
    started = run_line(start.replace(_COMMAND, ""), values) if start else None
    return f"{started}{shlex.quote(command)}" if started is not None else command


def filled(text: str, values: Mapping[str, str]) -> str:
    """Returns a sentence with its placeholders filled. A placeholder without a value, or whose value is unsafe in a
    command, becomes a word such as `HOST`."""
    return SLOT.sub(lambda found: _word(found[1], values) or _PLACEHOLDER_NAMES.get(found[1], found[0]), text)


def general(text: str, captured: Iterable[str] = ()) -> str:
    """Returns a command or sentence for any reader: `{host}` and the names that the entry has `captured` become HOST
    and so on."""
    return filled(text, {name: name.upper() for name in captured})


def general_parts(text: str, captured: Iterable[str] = ()) -> tuple[tuple[str, bool], ...]:
    """Returns the result of `general` in pieces, each with whether the reader must replace it."""
    known = _PLACEHOLDER_NAMES | {name: name.upper() for name in captured}
    parts, done = [], 0
    for place in (found for found in _OPEN_PLACE.finditer(text) if not found[1] or found[1] in known):
        parts += [(text[done : place.start()], False), (known.get(place[1] or "", place[0]), True)]
        done = place.end()
    return tuple(part for part in [*parts, (text[done:], False)] if part[0])


def is_plain(text: str) -> bool:
    """Returns whether a shell reads a text as one ordinary word, in and out of quotes."""
    return _PLAIN.fullmatch(text) is not None


def _command(template: str, values: Mapping[str, str]) -> str | None:
    if "{" not in template:
        return template
    quoted = [found.span() for found in _QUOTED.finditer(template)]
    shows = template.startswith("print(")
    read_twice = _READ_TWICE.search(template) is not None
    parts, done = [], 0
    for place in SLOT.finditer(template):
        name = place[1]
        if name in values:
            bare = not read_twice and not any(start < place.start() < end for start, end in quoted)
            word = (
                (values[name] if name in _CODE else _word(name, values))
                or (_print_expression(name, values) if shows else None)
                or (_host_list(name, values) if f"'{place[0]}'" in template else None)
                or (_path(values[name]) if name in PATHS and bare else None)
            )
            if word is None:
                return None
        else:
            word = _PLACEHOLDER_NAMES.get(name, place[0])
        parts += [template[done : place.start()], word]
        done = place.end()
    return "".join([*parts, template[done:]])


def _word(name: str, values: Mapping[str, str]) -> str | None:
    """Returns the value of a placeholder if it is safe anywhere in a command."""
    value = values.get(name, "")
    safe = is_plain(value) and (name not in _OF_HOSTS or host_name(value) is not None)
    return value if safe else None


def _print_expression(name: str, values: Mapping[str, str]) -> str | None:
    """Returns a part of the user's line that a print statement above it can show."""
    value = values[name]
    return value if name in _SHOWN and _EXPRESSION.fullmatch(value) else None


def _host_list(name: str, values: Mapping[str, str]) -> str | None:
    return values[name] if name in _HOST_LISTS and _HOST_LIST.fullmatch(values[name]) else None


def _path(path: str) -> str | None:
    """Returns a path in quotes, or None if it does not look like a path or could be read as an option."""
    shown = 0 < len(path) <= _MAX_PATH_LENGTH and path.isprintable() and not path.startswith("-")
    return shlex.quote(path) if shown else None
