"""Requests from Slack, with the signature already checked: queues work in the outbox and returns a first answer.

All of it is fast, because Slack waits three seconds. Queued work survives a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from torchtriage.chat import slack_modal
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.slack_payload import Button, Command, Delivery, Event, Interaction, Kind, Message, log_in
from torchtriage.chat.wording import word
from torchtriage.domain.group import GroupChange, GroupStatus
from torchtriage.domain.incident import Feedback
from torchtriage.domain.json_form import fields_form
from torchtriage.errors import NotFound
from torchtriage.reading.redaction.encoded_secrets import without_spelled_secrets
from torchtriage.reading.redaction.redact import redacted
from torchtriage.services import groups, incidents
from torchtriage.services.notices import language
from torchtriage.services.service import Service
from torchtriage.services.slack_jobs import CHANNEL, TAKE, ReplyTarget, SubmittedLog, put_reply
from torchtriage.storage import outbox, slack_state
from torchtriage.storage.outbox import Wanted

SHORTCUT = "triage_this"  # the message shortcut's id
MUTED_FOR = timedelta(days=7)
_FORM_SECONDS = 2.5  # Slack's trigger id for a form expires after three seconds
_MAX_LENGTH = 200_000  # characters of a message

Answer = dict[str, Any] | None


def command(service: Service, key: str, given: dict[str, str]) -> Answer:
    """`/triage LOG`, or without a log a form. Returns what the person sees at once. Raises BadInput."""
    lang, base = language(service), service.settings.base_url
    asked = Command.of(given)
    where = ReplyTarget(asked.channel_id, "", asked.response_url, asked.user_id)
    text = log_in(asked.text)
    if text.lower() == "help":
        return _only_you(word(lang, "help", url=base))
    if text:
        _put(service, key, SubmittedLog(asked.user_name or where.user, asked.channel_name, where, text))
        return _only_you(word(lang, "taken", url=base))
    if service.channels.slack is None:
        return _only_you(word(lang, "no_bot"))
    return _open_form(service, asked.trigger_id, where, asked.channel_name)


def interaction(service: Service, key: str, payload: dict[str, Any]) -> Answer:
    """A button, a shortcut or a form. Returns the answer to Slack, or None. Raises BadInput."""
    kinds: dict[str, Callable[[Service, str, Interaction], Answer]] = {
        "message_action": _shortcut,
        "shortcut": _global_shortcut,
        "view_submission": _form,
        "block_actions": _button,
    }
    found = kinds.get(str(payload.get("type")))
    return found(service, key, Interaction.of(payload)) if found else None


def event(service: Service, key: str, payload: dict[str, Any]) -> Answer:
    """A shared file, or a message to the bot. The same event is handled once. Raises BadInput."""
    delivery = Delivery.of(payload)
    if payload.get("type") == "url_verification":
        return {"challenge": delivery.challenge}
    kind = Kind.of(payload.get("event") or {}).type
    if kind not in ("file_shared", "app_mention"):
        return None
    happened = Event.of(payload["event"])
    if delivery.event_id:  # Slack signs each retry separately, so the signature cannot be the key
        key = f"slack event {delivery.event_id}"
    user, channel = happened.user_id or happened.user, happened.channel_id or happened.channel
    if happened.bot_id or user in {known.user_id for known in delivery.authorizations if known.is_bot}:
        return None
    if kind == "file_shared":
        where = ReplyTarget(channel, "", "", user)
        _put(service, key, SubmittedLog(user, channel, where, files=(happened.file_id,), dropped=True))
    else:
        where = ReplyTarget(channel, happened.thread_ts or happened.ts, "", user)
        _put_message(service, key, happened, SubmittedLog(user, channel, where))
    return None


def _shortcut(service: Service, key: str, sent: Interaction) -> Answer:
    if sent.callback_id == SHORTCUT:
        thread = sent.message.thread_ts or sent.message.ts or sent.message_ts
        where = ReplyTarget(sent.channel.id, thread, sent.response_url, sent.user.id)
        _put_message(service, key, sent.message, SubmittedLog(sent.user.called, sent.channel.name, where))
    return None


def _global_shortcut(service: Service, key: str, sent: Interaction) -> Answer:
    if service.channels.slack is not None:
        _open_form(service, sent.trigger_id, ReplyTarget(user=sent.user.id), "")
    return None


def _form(service: Service, key: str, sent: Interaction) -> Answer:
    filled = slack_modal.submitted(sent.view)
    if not filled.text.strip() and not filled.files:
        return slack_modal.empty(language(service))
    place = filled.place
    where = ReplyTarget(place.channel, "", place.url, place.user)
    _put(service, key, SubmittedLog(sent.user.called, place.name, where, filled.text, filled.files))
    return None


def _button(service: Service, key: str, sent: Interaction) -> Answer:
    pressed = sent.actions[0] if sent.actions else Button()
    where = ReplyTarget(url=sent.response_url, user=sent.user.id)
    with service.database.transaction() as session:
        if not slack_state.is_first(session, key, datetime.now(UTC)):
            return None
    try:
        reply = _run_action(service, pressed.action_id, pressed.value, f"slack:{sent.user.called}")
    except NotFound:
        reply = word(language(service), "gone")
    if reply:
        with service.database.transaction() as session:
            put_reply(session, key, where, reply)
    return None


def _run_action(service: Service, action: str, about: str, by: str) -> str | None:
    """Does what a button says, and returns the text of the answer. Raises NotFound."""
    lang = language(service)
    if action in ("mute", "resolve"):
        change = GroupChange(mute=MUTED_FOR) if action == "mute" else GroupChange(status=GroupStatus.RESOLVED)
        group = groups.change_group(service, about, change, by)
        return word(lang, f"done_{action}", title=group.title or group.signature or group.id)
    match action:
        case "right" | "wrong":
            incidents.give_feedback(service, about, Feedback(action, by, datetime.now(UTC)))
            return word(lang, f"done_{action}", url=f"{service.settings.base_url}/incidents/{about}")
    return None  # the button is a link to a page


def _put_message(service: Service, key: str, message: Message, given: SubmittedLog) -> None:
    """Accepts the content of a message: its files and code blocks, or else its text."""
    files = tuple(file.id for file in message.files if file.id)
    log = log_in(message.text) if not files or "```" in message.text else ""
    helping = log.lower() == "help"
    if files or (log and not helping):
        _put(
            service,
            key,
            SubmittedLog(given.user, given.channel_name, given.where, log, files[: slack_modal.MAX_FILES]),
        )
        return
    with service.database.transaction() as session:
        if slack_state.is_first(session, key, datetime.now(UTC)):
            reply = word(language(service), "help" if helping else "nothing_in_it", url=service.settings.base_url)
            put_reply(session, key, given.where, reply)


def _put(service: Service, key: str, given: SubmittedLog) -> None:
    """Queues the log and records the request in one transaction, so that it is handled exactly once."""
    now = datetime.now(UTC)
    text = given.text[:_MAX_LENGTH].encode("utf-8", "replace")
    clean = b"".join(without_spelled_secrets(redacted([text]))).decode("utf-8", "replace")
    detail = fields_form(replace(given, text=clean.replace("\0", "")))
    with service.database.transaction() as session:
        if slack_state.is_first(session, key, now):
            outbox.put(session, Wanted(f"{key} log", TAKE, CHANNEL, detail=detail), now)


def _open_form(service: Service, ticket: str, where: ReplyTarget, name: str) -> Answer:
    lang = language(service)
    place = slack_modal.Place(channel=where.channel, url=where.url, user=where.user, name=name[:100])
    view = slack_modal.view(lang, service.settings.base_url, place)
    assert service.channels.slack is not None
    try:
        service.channels.slack.call("views.open", {"trigger_id": ticket, "view": view}, _FORM_SECONDS)
    except Undelivered as problem:
        return _only_you(word(lang, "refused", reason=problem.message))
    return None


def _only_you(text: str) -> dict[str, Any]:
    # Imported here, because these routes also exist without the extra `slack`.
    from torchtriage.chat.slack_blocks import note

    return {"response_type": "ephemeral", **note(text)}
