"""What areas of the knowledge base are called: an area's id in, its name for people out."""

from __future__ import annotations

from torchtriage.domain.entry import Language
from torchtriage.web.pages.translations import catalogue


def area_name(lang: Language, area: str) -> str:
    """-> its name; the id itself for an area that only somebody's own entries have."""
    found = catalogue().get(f"area_{area}")
    return found.in_(lang) if found else area
