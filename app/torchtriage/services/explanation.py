"""Asks a language model about a failure. This is off by default, and nothing is sent unless somebody asks.

The model gets only the brief. Each of its claims is checked against the log's lines and shown beside the verdict, which
never changes. The service asks through the outbox; the command line asks directly.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from torchtriage.answer.brief.brief import Brief
from torchtriage.answer.model_claims import NoClaims, claims_of, question
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.domain.access import AuditLine
from torchtriage.domain.entry import Language
from torchtriage.domain.explanation import Explanation, ExplanationState
from torchtriage.domain.notice import OutboxItem, SendState
from torchtriage.errors import BadInput, NotTriaged, SettingError
from torchtriage.services.incident_brief import incident_brief
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service
from torchtriage.services.slack_jobs import Keep
from torchtriage.settings import Settings
from torchtriage.storage import audit_log, explanations, outbox
from torchtriage.storage.outbox import Wanted

EXPLAIN = "explanation"
CHANNEL = "model"
_TRIES = 3  # calls to a model cost money; a person can ask again
_MAX_TEXT_LENGTH = 200_000  # maximum characters of an answer that are read


def ask_model(settings: Settings, brief: Brief, lang: Language) -> Explanation:
    """Asks the configured model about a brief in one call. Returns its answer, with claims checked against the brief's
    lines. Raises SettingError if no model is set, and Undelivered."""
    if not settings.llm_url:
        raise SettingError("TRIAGE_LLM_URL: no language model is set", setting="TRIAGE_LLM_URL")
    asked = {"model": settings.llm_model, "messages": question(brief, lang), "temperature": 0}
    headers = {"Content-Type": "application/json"}
    if settings.llm_key:
        headers["Authorization"] = f"Bearer {settings.llm_key}"
    # Private addresses are allowed: the operator sets this one and may run a model on the internal network.
    address = settings.llm_url.rstrip("/") + "/chat/completions"
    content = json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace")
    answer = Outgoing(private=True).post(address, content, headers, settings.llm_seconds)
    refuse(answer, "the model")
    try:
        claims = claims_of(_answer_text(answer.json()), brief.lines)
    except NoClaims as problem:
        raise Undelivered(str(problem)) from None
    return Explanation(claims, settings.llm_model, datetime.now(UTC))


def queue_question(service: Service, incident_id: str, lang: Language, by: str) -> None:
    """Queues a question about an incident, unless one is queued already. Raises BadInput if no model is set, NotFound
    and NotTriaged."""
    if not service.settings.llm_url:
        raise BadInput("no language model is configured: TRIAGE_LLM_URL")
    incident = read_incident(service, incident_id)
    if incident.verdict is None:
        raise NotTriaged("the incident has no verdict", state=incident.state)
    now = datetime.now(UTC)
    key = f"incident {incident.id} {EXPLAIN} {now.isoformat()}"
    wanted = Wanted(key, EXPLAIN, CHANNEL, incident.id, detail={"lang": lang})
    with service.database.transaction() as session:
        last = outbox.latest(session, EXPLAIN, incident.id)
        if last is None or last.state is not SendState.READY:
            outbox.put(session, wanted, now)
            audit_log.add(session, AuditLine(now, by, "explain", f"incident {incident.id}", {"after": {"lang": lang}}))


def explain(service: Service, item: OutboxItem) -> Keep:
    """Asks in one call. Returns a function that stores the answer. Raises Undelivered and NotFound."""
    incident_id = item.incident or ""
    incident = read_incident(service, incident_id)
    lang: Language = "zh" if item.detail.get("lang") == "zh" else "en"
    try:
        brief = incident_brief(service, incident)
        made = ask_model(service.settings, brief, lang)
    except (NotTriaged, SettingError) as problem:
        raise Undelivered(problem.message) from None
    except Undelivered as problem:
        if item.tries >= _TRIES:
            raise Undelivered(problem.message) from None
        raise
    return lambda session: explanations.keep(session, incident_id, made)


def explanation_of(service: Service, incident_id: str) -> ExplanationState:
    """Returns the state of the question about an incident, and the answer if there is one."""
    with service.database.reading() as session:
        last = outbox.latest(session, EXPLAIN, incident_id)
        explanation = explanations.of(session, incident_id)
    asked = last is not None and last.state is SendState.READY
    failed = last is not None and last.state in (SendState.READY, SendState.FAILED)
    return ExplanationState(asked, last.problem if last is not None and failed else None, explanation)


def _answer_text(answer: dict[str, Any]) -> str:
    """Returns the answer's text. Raises Undelivered if there is none."""
    try:
        text = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        text = None
    if not isinstance(text, str) or not text.strip():
        raise Undelivered("the model's response has no text")
    return text[:_MAX_TEXT_LENGTH]
