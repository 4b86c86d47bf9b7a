"""Fits sections of text into a number of tokens. The result says what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torchtriage.answer.brief.token_count import token_count

MAX_LINES = 200  # lines of a section that are considered
_FENCE = "```"
_CLOSING = 60  # tokens of the line that names the sections that did not fit
_MARKER = 16  # tokens of the line that says how many lines were left out


class QuotedLine(NamedTuple):
    """A line of the log. `telling` means that it shows the failure. Lines with a lower `place` are kept first."""

    file: str | None
    number: int
    text: str
    telling: bool
    place: float


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with lines of text, most useful first, or with lines of the log in their order. `share` is its reserved
    part of the tokens. Tokens that other sections do not need are added."""

    title: str
    items: Sequence[str] = ()
    share: float = 0.1
    quoted: Sequence[QuotedLine] = ()

    @property
    def size(self) -> int:
        """The number of lines in the section."""
        return len(self.quoted or self.items)

    @property
    def head(self) -> list[str]:
        return [f"## {self.title}"] if self.title else []


def fit_sections(sections: Sequence[Section], tokens: int, left_out: str) -> str:
    """Returns the sections in order, with at most `tokens` tokens in total. `left_out` is the sentence that says how
    many lines were left out."""
    needs = [_cost(_full_section(section, left_out)) for section in sections]
    tokens -= _CLOSING if sum(needs) > tokens else 0
    given = [min(need, int(section.share * tokens)) for need, section in zip(needs, sections, strict=True)]
    for at, section in enumerate(sections):
        if not _cut(section, given[at], left_out):
            given[at] = 0  # a section whose first line does not fit gives its share to the others
    left = tokens - sum(given)
    parts: list[list[str]] = []
    for section, need, own in zip(sections, needs, given, strict=True):
        part = _cut(section, min(need, own + left), left_out)
        left += own - _cost(part)
        parts.append(part)
    gone = [section for section, part in zip(sections, parts, strict=True) if section.size and not part]
    if gone:
        names = ", ".join(f"{section.title} {section.size}" for section in gone)
        parts.append([f"*{left_out.format(count=sum(section.size for section in gone))}: {names}*"])
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _cost(lines: Iterable[str]) -> int:
    """Returns the tokens of the lines, their line ends and a blank line below them."""
    costs = [token_count(line) + 1 for line in lines]
    return sum(costs) + 1 if costs else 0


def _cut(section: Section, tokens: int, left_out: str) -> list[str]:
    """Returns the lines of a section that fit. The result is empty if the first line does not fit."""
    whole = _full_section(section, left_out)
    if _cost(whole) <= tokens:
        return whole
    return _cut_quoted(section, tokens, left_out) if section.quoted else _cut_items(section, tokens, left_out)


def _full_section(section: Section, left_out: str) -> list[str]:
    if section.quoted:
        return _shown(section, list(section.quoted), left_out)
    return [*section.head, *section.items] if section.items else []


def _cut_items(section: Section, tokens: int, left_out: str) -> list[str]:
    kept = list(section.head)
    left = tokens - _cost(kept) - _MARKER - 1
    for at, item in enumerate(section.items):
        left -= token_count(item) + 1
        if left < 0:
            return [*kept, f"- {left_out.format(count=len(section.items) - at)}"] if at else []
        kept.append(item)
    return kept


def _cut_quoted(section: Section, tokens: int, left_out: str) -> list[str]:
    kept: list[QuotedLine] = []
    for line in sorted(section.quoted, key=lambda line: line.place):
        more = sorted([*kept, line], key=section.quoted.index)
        if _cost(_shown(section, more, left_out)) > tokens:
            break
        kept = more
    return _shown(section, kept, left_out) if kept else []


def _shown(section: Section, lines: Sequence[QuotedLine], left_out: str) -> list[str]:
    width = max((len(str(line.number)) for line in lines), default=1)
    lost = sum(line.telling for line in section.quoted) - sum(line.telling for line in lines)
    below = [f"{'':{width + 2}}… {left_out.format(count=lost)}"] if lost else []
    return [*section.head, f"{_FENCE}text", *_numbered(lines, width, left_out), *below, _FENCE]


def _numbered(lines: Sequence[QuotedLine], width: int, left_out: str) -> Iterator[str]:
    """Yields the lines with their numbers. A number at the start keeps a code fence in a line from ending the quote."""
    file, number = None, 0
    for line in lines:
        if line.file != file:
            yield f"{line.file}:"
        elif number and line.number > number + 1:
            yield f"{'':{width + 2}}… {left_out.format(count=line.number - number - 1)}"
        file, number = line.file, line.number
        yield f"{'>' if line.telling else ' '} {line.number:{width}} {line.text}".rstrip()
