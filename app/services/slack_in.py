"""Slack in: what Slack sends, its signature already checked, becomes work in the outbox, and a first answer at once.

All of it is quick, as Slack waits for three seconds; what was put into the outbox survives whatever happens then.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from app.chat import slack_modal
from app.chat.slack_message import note
from app.chat.slack_text import log_in
from app.chat.undelivered import Undelivered
from app.chat.wording import word
from app.domain.group import GroupChange, GroupStatus
from app.domain.incident import Feedback
from app.errors import NotFound
from app.reading.redact import redacted
from app.reading.spelled import without_spelled_secrets
from app.services import groups, incidents
from app.services.notices import language
from app.services.service import Service
from app.services.slack_work import CHANNEL, TAKE, Given, Where, put_reply
from app.storage import outbox, slack
from app.storage.outbox import Wanted

SHORTCUT = "triage_this"  # on a message
MUTED_FOR = timedelta(days=7)
_FORM_SECONDS = 2.5  # Slack's ticket for a form is good for three
_LONGEST = 200_000  # characters of a message

Answer = dict[str, Any] | None


def command(service: Service, key: str, given: dict[str, str]) -> Answer:
    """`/triage LOG`, or a form without one -> what the person sees at once."""
    lang, base = language(service), service.settings.base_url
    where = Where(given.get("channel_id", ""), "", given.get("response_url", ""), given.get("user_id", ""))
    text = log_in(given.get("text", ""))
    if text.lower() == "help":
        return _only_you(word(lang, "help", url=base))
    if text:
        user = given.get("user_name") or where.user
        _put(service, key, Given(user, given.get("channel_name", ""), where, text))
        return _only_you(word(lang, "taken", url=base))
    if service.channels.slack is None:
        return _only_you(word(lang, "no_bot"))
    return _open_form(service, given.get("trigger_id", ""), where, given.get("channel_name", ""))


def interaction(service: Service, key: str, payload: dict[str, Any]) -> Answer:
    """A button, a shortcut or a form -> what Slack is told at once, or None."""
    kinds: dict[str, Callable[[Service, str, dict[str, Any]], Answer]] = {
        "message_action": _shortcut,
        "shortcut": _global_shortcut,
        "view_submission": _form,
        "block_actions": _button,
    }
    found = kinds.get(str(payload.get("type")))
    return found(service, key, payload) if found else None


def event(service: Service, key: str, payload: dict[str, Any]) -> Answer:
    """A file was shared, or somebody spoke to the bot; the same event twice is one."""
    if payload.get("type") == "url_verification":
        return {"challenge": str(payload.get("challenge", ""))}
    happened = _part(payload, "event")
    if payload.get("event_id"):  # sent again it is signed anew
        key = f"slack event {payload['event_id']}"
    user = str(happened.get("user_id") or happened.get("user") or "")
    channel = str(happened.get("channel_id") or happened.get("channel") or "")
    if happened.get("bot_id") or user in _own_users(payload):
        return None
    if happened.get("type") == "file_shared":
        where = Where(channel, "", "", user)
        _put(service, key, Given(user, channel, where, files=(str(happened.get("file_id")),), dropped=True))
    elif happened.get("type") == "app_mention":
        where = Where(channel, str(happened.get("thread_ts") or happened.get("ts") or ""), "", user)
        _put_message(service, key, happened, Given(user, channel, where))
    return None


def _shortcut(service: Service, key: str, payload: dict[str, Any]) -> Answer:
    if payload.get("callback_id") != SHORTCUT:
        return None
    person, channel, said = _part(payload, "user"), _part(payload, "channel"), _part(payload, "message")
    thread = str(said.get("thread_ts") or said.get("ts") or payload.get("message_ts") or "")
    url, user = str(payload.get("response_url") or ""), str(person.get("id") or "")
    where = Where(str(channel.get("id") or ""), thread, url, user)
    name = str(person.get("username") or person.get("name") or user)
    _put_message(service, key, said, Given(name, str(channel.get("name") or ""), where))
    return None


def _global_shortcut(service: Service, key: str, payload: dict[str, Any]) -> Answer:
    if service.channels.slack is not None:
        user = str(_part(payload, "user").get("id") or "")
        _open_form(service, str(payload.get("trigger_id") or ""), Where(user=user), "")
    return None


def _form(service: Service, key: str, payload: dict[str, Any]) -> Answer:
    filled = slack_modal.submitted(_part(payload, "view"))
    if not filled.text.strip() and not filled.files:
        return slack_modal.empty(language(service))
    person = _part(payload, "user")
    known = json.loads(filled.where)
    name = str(person.get("username") or person.get("name") or person.get("id") or "")
    where = Where(known.get("channel", ""), "", known.get("url", ""), known.get("user", ""))
    _put(service, key, Given(name, known.get("name", ""), where, filled.text, filled.files))
    return None


def _button(service: Service, key: str, payload: dict[str, Any]) -> Answer:
    person = _part(payload, "user")
    pressed = (payload.get("actions") or [{}])[0]
    by = f"slack:{person.get('username') or person.get('name') or person.get('id')}"
    where = Where(url=str(payload.get("response_url") or ""), user=str(person.get("id") or ""))
    with service.database.transaction() as session:
        if not slack.is_first(session, key, datetime.now(UTC)):
            return None
    try:
        said = _do(service, str(pressed.get("action_id")), str(pressed.get("value") or ""), by)
    except NotFound:
        said = word(language(service), "gone")
    if said:
        with service.database.transaction() as session:
            put_reply(session, key, where, said)
    return None


def _do(service: Service, action: str, about: str, by: str) -> str | None:
    """Does what a button says -> what is said of it. Raises NotFound."""
    lang = language(service)
    if action in ("mute", "resolve"):
        change = GroupChange(mute=MUTED_FOR) if action == "mute" else GroupChange(status=GroupStatus.RESOLVED)
        group = groups.change_group(service, about, change, by)
        return word(lang, f"done_{action}", title=group.title or group.signature or group.id)
    if action in ("right", "wrong"):
        incidents.say(service, about, Feedback(action, by, datetime.now(UTC)))
        return word(lang, f"done_{action}", url=f"{service.settings.base_url}/incidents/{about}")
    return None  # a link that opens a page


def _put_message(service: Service, key: str, said: dict[str, Any], given: Given) -> None:
    """Takes in what a message holds: its files with its code blocks, or else its text."""
    files = tuple(str(file["id"]) for file in said.get("files") or () if file.get("id"))
    text = str(said.get("text") or "")
    log = log_in(text) if not files or "```" in text else ""
    helping = log.lower() == "help"
    if files or (log and not helping):
        _put(service, key, Given(given.user, given.channel_name, given.where, log, files[: slack_modal.MOST_FILES]))
        return
    with service.database.transaction() as session:
        if slack.is_first(session, key, datetime.now(UTC)):
            told = word(language(service), "help" if helping else "nothing_in_it", url=service.settings.base_url)
            put_reply(session, key, given.where, told)


def _put(service: Service, key: str, given: Given) -> None:
    """In one transaction with the note that it came, so that it is worked once and not lost."""
    now = datetime.now(UTC)
    text = given.text[:_LONGEST].encode("utf-8", "replace")
    clean = b"".join(without_spelled_secrets(redacted([text]))).decode("utf-8", "replace")
    detail = given.as_dict() | {"text": clean.replace("\0", ""), "files": list(given.files)}
    with service.database.transaction() as session:
        if slack.is_first(session, key, now):
            outbox.put(session, Wanted(f"{key} log", TAKE, CHANNEL, detail=detail), now)


def _open_form(service: Service, ticket: str, where: Where, name: str) -> Answer:
    lang = language(service)
    known = {"channel": where.channel, "url": where.url, "user": where.user, "name": name[:100]}
    view = slack_modal.view(lang, service.settings.base_url, json.dumps(known))
    assert service.channels.slack is not None
    try:
        service.channels.slack.call("views.open", {"trigger_id": ticket, "view": view}, _FORM_SECONDS)
    except Undelivered as problem:
        return _only_you(word(lang, "refused", reason=problem.message))
    return None


def _own_users(payload: dict[str, Any]) -> set[str]:
    """-> the users as which the bot itself is seen."""
    return {str(known.get("user_id")) for known in payload.get("authorizations") or () if known.get("is_bot")}


def _part(payload: dict[str, Any], name: str) -> dict[str, Any]:
    found = payload.get(name)
    return found if isinstance(found, dict) else {}


def _only_you(text: str) -> dict[str, Any]:
    return {"response_type": "ephemeral", **note(text)}
