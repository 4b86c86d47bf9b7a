"""What stands at the edges of a file's lines: margins, marks at their ends, the signs of a page that set them."""

from __future__ import annotations

from collections.abc import Sequence

from torchtriage.reading.prefixes.file_labels import Edges
from torchtriage.reading.prefixes.margins import margins, tails
from torchtriage.reading.prefixes.page_markup import is_set, printed


def edges_of(sample: Sequence[str]) -> Edges | None:
    """-> what stands at the edges of the lines of a file, of which these are the first; None where nothing does."""
    page = is_set(sample)
    bare = [printed(line) for line in sample] if page else sample
    found = Edges(margins(bare), tails(bare), page)
    return found if any(found) else None


def within(text: str, edges: Edges) -> str:
    """-> a line as it was printed, without what stands at its edges."""
    if edges.is_set:
        text = printed(text)
    for margin in edges.margins:
        if found := margin.match(text):
            text = text[found.end() :]
    for tail in edges.tails:
        bare = text.rstrip()
        text = bare.removesuffix(tail).rstrip() if bare.endswith(tail) else text
    return text
