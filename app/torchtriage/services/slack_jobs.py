"""The outbox's work for Slack: accepts logs that people submitted there, and answers them.

Each function handles one item and returns a function that stores the result. They raise Undelivered and NotFound.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.outbound_http import refuse
from torchtriage.chat.slack_api import SlackApi, is_slacks
from torchtriage.chat.wording import word
from torchtriage.domain.byte_sizes import limit_text
from torchtriage.domain.incident import Job
from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.domain.notice import NoticeKind, OutboxItem
from torchtriage.errors import BadInput
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import accept
from torchtriage.services.notices import language, read_notice
from torchtriage.services.service import Service
from torchtriage.storage import outbox
from torchtriage.storage.outbox import Wanted

TAKE, ANSWER, REPLY = "slack log", "slack answer", "slack reply"
CHANNEL = "slack"  # of the outbox items; not a channel of the settings, so these items block none
_SECONDS = 240  # time limit for all files of a message
_MAX_BYTES = 1 << 30  # bytes; Slack does not accept larger files
_LOGS = lazy_regex(r"\.(log|out|err|txt|gz|zst|tgz|tar|zip|jsonl?|csv|\d+)$", re.IGNORECASE)
# Errors after which the bot tries another place.
_ELSEWHERE = {"not_in_channel", "channel_not_found", "is_archived", "restricted_action", "no_permission"}

Keep = Callable[[Session], Any]


@dataclass(frozen=True, slots=True)
class ReplyTarget:
    """Where an answer goes: to the thread, or else to Slack's response URL, or else to the person."""

    channel: str = ""
    thread: str = ""
    url: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class SubmittedLog:
    """What somebody submitted. `dropped`: a file was shared without mentioning the bot, so it is accepted only if it is
    a log."""

    user: str
    channel_name: str
    where: ReplyTarget
    text: str = ""
    files: tuple[str, ...] = ()
    dropped: bool = False
    labels: dict[str, str] = field(default_factory=dict)


def take(service: Service, item: OutboxItem) -> Keep:
    """Accepts a log like any other incident. The answer waits for the verdict."""
    given = from_json_form(SubmittedLog, item.detail)
    where = given.where
    try:
        files = [_file(service, file, where.channel) for file in given.files]
        if given.dropped:
            files = [file for file in files if file.is_log]
            if not files:
                return _nothing
            where = ReplyTarget(where.channel, files[0].thread or where.thread, where.url, where.user)
        job = Job(user=given.user or None, labels={"source": "slack", "channel": given.channel_name or "?"})
        accepted = accept(service, job, _uploads(service, given.text, files))
    except (BadInput, Undelivered) as problem:
        if isinstance(problem, Undelivered) and problem.passing:
            raise
        key = "not_fetched" if isinstance(problem, Undelivered) else "refused"
        return _replying(item.key, where, word(language(service), key, reason=problem.message))
    return _answering(item.key, where, accepted.incident_id)


def answer(service: Service, item: OutboxItem) -> Keep:
    """Sends the verdict to the person who submitted the log."""
    # Imported here, because the outbox also works without the extra `slack`.
    from torchtriage.chat.slack_blocks import message

    if item.incident is None:
        raise Undelivered("the incident was deleted")
    with service.database.reading() as session:
        notice = read_notice(session, service, NoticeKind.ANSWER, item.incident, {})
    buttons = bool(service.settings.slack_signing_secret)
    _post(service, from_json_form(ReplyTarget, item.detail["where"]), message(notice, buttons), open_to_all=True)
    return _nothing


def reply(service: Service, item: OutboxItem) -> Keep:
    """Sends a text to one person."""
    from torchtriage.chat.slack_blocks import note  # imported here, see above

    _post(service, from_json_form(ReplyTarget, item.detail["where"]), note(item.detail["text"]), open_to_all=False)
    return _nothing


def put_reply(session: Session, key: str, where: ReplyTarget, text: str) -> None:
    wanted = Wanted(f"{key} reply", REPLY, CHANNEL, detail={"where": fields_form(where), "text": text})
    outbox.put(session, wanted, datetime.now(UTC))


def _nothing(_: Session) -> None:
    pass


def _replying(key: str, where: ReplyTarget, text: str) -> Keep:
    return lambda session: put_reply(session, key, where, text)


def _answering(key: str, where: ReplyTarget, incident: str) -> Keep:
    # Two messages can share the same file; in one thread it is answered once.
    place = f"{incident} {where.channel} {where.thread}" if where.thread else key
    wanted = Wanted(f"slack answer {place}", ANSWER, CHANNEL, incident, detail={"where": fields_form(where)})
    return lambda session: outbox.put_for_verdict(session, wanted, datetime.now(UTC))


def _post(service: Service, where: ReplyTarget, payload: dict[str, Any], open_to_all: bool) -> None:
    slack = service.channels.slack
    problem: Undelivered | None = None
    # A message for one person must not be posted in a thread.
    if slack and where.thread and open_to_all:
        problem = _said(slack, {"channel": where.channel, "thread_ts": where.thread, **payload})
        if problem is None:
            return
    if where.url:
        if not is_slacks(where.url, service.settings.slack_api_url):
            raise Undelivered("the response URL is not on a Slack host")
        kind = "in_channel" if open_to_all else "ephemeral"
        answered = service.channels.outgoing.post_json(
            where.url, {"response_type": kind, "replace_original": False, **payload}
        )
        refuse(answered, "Slack")
        return
    for channel in filter(None, (where.channel if open_to_all and not where.thread else "", where.user)):
        if slack and (problem := _said(slack, {"channel": channel, **payload})) is None:
            return
    raise problem or Undelivered("no way to answer in Slack: no bot token and no response URL")


def _said(slack: SlackApi, payload: dict[str, Any]) -> Undelivered | None:
    """Posts a message. Returns the error if another place may work, else None."""
    try:
        slack.call("chat.postMessage", {"unfurl_links": False, **payload})
    except Undelivered as problem:
        if problem.detail.get("error") in _ELSEWHERE:
            return problem
        raise
    return None


@dataclass(frozen=True, slots=True)
class _SharedFile:
    """A file that somebody shared, and its `thread`. `sent_by_bot`: a bot shared it, or the file was deleted."""

    name: str
    bytes: int
    url: str
    mimetype: str
    sent_by_bot: bool
    thread: str

    @property
    def is_log(self) -> bool:
        named = self.mimetype == "text/plain" or bool(_LOGS.search(self.name))
        return not self.sent_by_bot and bool(self.url) and named


def _file(service: Service, file: str, channel: str) -> _SharedFile:
    """Reads the metadata of a file from Slack. Raises Undelivered."""
    slack = service.channels.slack
    if slack is None:
        raise Undelivered("files need a bot token (TRIAGE_SLACK_BOT_TOKEN)")
    found = slack.read("files.info", {"file": file}).get("file") or {}
    shares = found.get("shares") or {}
    posts = [post for kind in shares.values() for post in kind.get(channel) or ()]
    thread = next((str(post.get("thread_ts") or post.get("ts") or "") for post in posts), "")
    return _SharedFile(
        name=str(found.get("name") or "log")[:200],
        bytes=int(found.get("size") or 0),
        url=str(found.get("url_private_download") or found.get("url_private") or ""),
        mimetype=str(found.get("mimetype") or ""),
        sent_by_bot=bool(found.get("bot_id")) or found.get("mode") in ("tombstone", "hidden_by_limit"),
        thread=thread,
    )


def _uploads(service: Service, text: str, files: list[_SharedFile]) -> Iterator[Upload]:
    """Yields the logs. Read each to its end before taking the next. Raises Undelivered."""
    if text.strip():
        yield Upload("log", iter([text.encode("utf-8", "replace") + b"\n"]))
    deadline = time.monotonic() + _SECONDS
    most = min(service.settings.max_log_bytes, _MAX_BYTES)
    for file in files:
        if file.bytes > most:
            raise Undelivered(f"{file.name} is larger than the limit of {limit_text(most)}")
        assert service.channels.slack is not None
        left = max(deadline - time.monotonic(), 1.0)
        with service.channels.slack.download(file.url, most, left) as chunks:
            yield Upload(file.name, chunks)
