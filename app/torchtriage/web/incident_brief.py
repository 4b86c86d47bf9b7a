"""Provides the brief of an incident to the API, the pages and agents."""

from __future__ import annotations

from starlette.responses import Response

from torchtriage.answer.brief.brief import Brief
from torchtriage.answer.brief.token_count import TOKENS
from torchtriage.domain.entry import Language
from torchtriage.services.incident_brief import incident_brief
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service


class MarkdownAnswer(Response):
    """A Markdown answer. Characters that UTF-8 cannot encode become question marks."""

    media_type = "text/markdown"

    def render(self, content: str) -> bytes:
        return content.encode("utf-8", "replace")


def brief_of(service: Service, incident_id: str, lang: Language, tokens: int = TOKENS) -> Brief:
    """Returns the brief of an incident. Raises NotFound, NotTriaged, DamagedLog or StorageUnavailable."""
    return incident_brief(service, read_incident(service, incident_id), lang, tokens)
