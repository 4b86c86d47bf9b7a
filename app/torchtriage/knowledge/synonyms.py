"""Synonyms in English and Chinese, and words without meaning for a search. Both come from `synonyms.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.tokenizer import stem, units

FILE = BUILT_IN / "synonyms.yaml"
NOTHING = "=nothing"  # the group of phrases that are ignored
Phrases = dict[str, list[tuple[tuple[str, ...], str]]]


def load(path: Path = FILE) -> Phrases:
    """Returns the phrases by their first word. Each is a tuple of stems and the name of its group; the longest come
    first.

    Raises KnowledgeError if the file is not a mapping of names to lists of phrases.
    """
    import yaml  # imported here because a start with a cached index does not need it

    content = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if not isinstance(content, dict) or not all(isinstance(phrases, list) for phrases in content.values()):
        raise KnowledgeError([f"{path.name}:1: must map names to lists of phrases"])
    found: Phrases = {}
    for name, phrases in content.items():
        for phrase in phrases:
            cut = tuple(stem(unit) for unit in units(str(phrase)))
            found.setdefault(cut[0], []).append((cut, f"={name}"))
    for group in found.values():
        group.sort(key=lambda phrase: -len(phrase[0]))
    return found


def meanings(stems: list[str], phrases: Phrases) -> list[tuple[int, int, str]]:
    """Returns (start, end, group) for each phrase found in `stems`. Each stem is used once, by the longest phrase that
    starts there."""
    found: list[tuple[int, int, str]] = []
    at = 0
    while at < len(stems):
        cut, name = next(_at(stems, at, phrases), ((stems[at],), ""))
        if name:
            found.append((at, at + len(cut), name))
        at += len(cut)
    return found


def _at(stems: list[str], at: int, phrases: Phrases) -> Iterator[tuple[tuple[str, ...], str]]:
    return (found for found in phrases.get(stems[at], ()) if tuple(stems[at : at + len(found[0])]) == found[0])
