"""A fake Slack on loopback. It signs its requests, repeats events, and rejects what Slack rejects.

It knows the limits of Block Kit, of response URLs and of the call rate. It keeps messages by channel, and says which
people each would ping.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import itertools
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import httpx2

from tests.http_server import Asked, Told, serving

SECRET, TOKEN = "8f742231b10e8888abcd99yyyzzz85a5", "xoxb-1-test"  # not secrets: made up for tests
_PINGS = re.compile(r"<[!@#]")
_BOTS = {"type": "bot", "user_id": "UBOT"}


@dataclass
class Message:
    channel: str
    ts: str
    payload: dict[str, Any]
    thread: str | None = None
    updates: int = 0


@dataclass
class FakeSlack:
    url: str = ""
    messages: list[Message] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)  # posted to response URLs
    views: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    pinged: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    limited: int = 0  # this many next calls are rate-limited
    wait: int = 7  # the value of Retry-After
    broken: int = 0  # this many next calls get an internal error
    errors: dict[str, str] = field(default_factory=dict)  # method or channel → its error
    absent: set[str] = field(default_factory=set)  # channels that the bot is not in
    used: dict[str, int] = field(default_factory=dict)  # posts by response URL
    clock: Iterator[int] = field(default_factory=lambda: itertools.count(1_700_000_000))

    # Requests to Slack

    def answer(self, asked: Asked) -> Told:
        self.calls.append(asked.path)
        if self.limited:
            self.limited -= 1
            return Told(b'{"ok": false, "error": "ratelimited"}', 429, {"Retry-After": str(self.wait)})
        if self.broken:
            self.broken -= 1
            return Told(b"oops", 500)
        if asked.path.startswith("/services/"):
            return self._webhook(asked)
        if asked.path.startswith("/answer/"):
            return self._response(asked)
        if asked.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _json({"ok": False, "error": "invalid_auth"})
        if asked.path.startswith("/files/"):
            return self._download(asked.path.removeprefix("/files/"))
        return _json(self._method(asked.path.removeprefix("/api/"), asked))

    def _webhook(self, asked: Asked) -> Told:
        problem = self._posted("#alerts", json.loads(asked.body))
        return Told(problem.encode(), 400) if problem else Told(b"ok")

    def _response(self, asked: Asked) -> Told:
        self.used[asked.path] = self.used.get(asked.path, 0) + 1
        if self.used[asked.path] > 5:
            return _json({"ok": False, "error": "used_url"}, 404)
        payload = json.loads(asked.body)
        problem = problem_with(payload)
        if problem:
            return Told(problem.encode(), 400)
        self.pinged += pings(payload)
        self.answers.append(payload)
        return Told(b"ok")

    def _download(self, file: str) -> Told:
        if file not in self.files:
            return Told(b"<html>Log in to Slack</html>", 200, {"Content-Type": "text/html"})
        return Told(self.files[file]["content"], 200, {"Content-Type": "text/plain"})

    def _method(self, method: str, asked: Asked) -> dict[str, Any]:
        if method in self.errors:
            return {"ok": False, "error": self.errors[method]}
        if method == "files.info":
            return self._file(parse_qs(asked.body.decode())["file"][0])
        if "application/json" not in asked.headers.get("Content-Type", ""):
            return {"ok": False, "error": "invalid_arguments"}
        given = json.loads(asked.body)
        if method == "views.open":
            problem = problem_with_view(given["view"])
            if not given.get("trigger_id"):
                problem = "invalid_trigger_id"
            if not problem:
                self.views.append(given["view"])
            return {"ok": False, "error": problem} if problem else {"ok": True, "view": {"id": "V1"}}
        return self._post(method, given)

    def _post(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        channel = given["channel"]
        if channel in self.absent or channel in self.errors:
            return {"ok": False, "error": self.errors.get(channel, "not_in_channel")}
        if method == "chat.update":
            found = next((m for m in self.messages if (m.channel, m.ts) == (channel, given["ts"])), None)
            problem = problem_with(given) if found else "message_not_found"
            if found and not problem:
                found.payload, found.updates = given, found.updates + 1
        else:
            assert method == "chat.postMessage", method
            problem = self._posted(channel, given)
        if problem:
            return {"ok": False, "error": problem}
        return {"ok": True, "channel": channel, "ts": self.messages[-1].ts}

    def _posted(self, channel: str, payload: dict[str, Any]) -> str | None:
        problem = problem_with(payload)
        if not problem:
            self.pinged += pings(payload)
            ts = f"{next(self.clock)}.000100"
            self.messages.append(Message(channel, ts, payload, payload.get("thread_ts")))
        return problem

    def _file(self, file: str) -> dict[str, Any]:
        if file not in self.files:
            return {"ok": False, "error": "file_not_found"}
        known = {name: value for name, value in self.files[file].items() if name != "content"}
        return {"ok": True, "file": known | {"id": file, "url_private_download": f"{self.url}/files/{file}"}}

    # Requests from Slack

    def share(self, content: bytes, name: str, channel: str = "C1", ts: str = "1.1", **more: Any) -> str:
        """Adds a file that somebody shared, and returns its id."""
        file = f"F{len(self.files) + 1}"
        shares = {"public": {channel: [{"ts": ts}]}}
        self.files[file] = {"name": name, "size": len(content), "mimetype": "text/plain", "shares": shares} | more
        self.files[file]["content"] = content
        return file

    def send(
        self,
        to: str,
        path: str,
        body: bytes,
        kind: str,
        headers: dict[str, str] | None = None,
        secret: str = SECRET,
        at: float | None = None,
    ) -> httpx2.Response:
        """Sends a signed request and returns the answer."""
        signed = {"Content-Type": kind} | signature(body, secret, time.time() if at is None else at)
        return client().post(f"{to}/slack/{path}", content=body, headers=signed | (headers or {}))

    def command(self, to: str, text: str = "", **more: str) -> httpx2.Response:
        given = {"command": "/triage", "text": text, "user_id": "U1", "user_name": "ann", "channel_id": "C1",
                 "channel_name": "ml-help", "trigger_id": "13.37", "response_url": f"{self.url}/answer/1"}  # fmt: skip
        return self.send(to, "commands", urlencode(given | more).encode(), "application/x-www-form-urlencoded")

    def interact(self, to: str, payload: dict[str, Any]) -> httpx2.Response:
        known = {"user": {"id": "U1", "username": "ann"}, "trigger_id": "13.37"}
        body = urlencode({"payload": json.dumps(known | payload)}).encode()
        return self.send(to, "interactions", body, "application/x-www-form-urlencoded")

    def press(self, to: str, payload: dict[str, Any], action: str) -> httpx2.Response:
        """Presses a button of a message. Fails if there is none."""
        (button,) = (known for known in buttons(payload) if known["action_id"] == action)
        pressed = {"type": "block_actions", "actions": [button], "response_url": f"{self.url}/answer/2"}
        return self.interact(to, pressed)

    def event(self, to: str, happened: dict[str, Any], number: str = "Ev1", **headers: str) -> httpx2.Response:
        payload = {"type": "event_callback", "event_id": number, "event": happened,
                   "authorizations": [{"user_id": "UBOT", "is_bot": True}]}  # fmt: skip
        return self.send(to, "events", json.dumps(payload).encode(), "application/json", headers)


@functools.cache
def client() -> httpx2.Client:
    """Returns one client per process, because making one takes longer than ten requests. It keeps no connections open,
    because servers end."""
    return httpx2.Client(timeout=120, limits=httpx2.Limits(max_keepalive_connections=0))


@contextmanager
def fake_slack() -> Iterator[FakeSlack]:
    slack = FakeSlack()
    with serving(slack.answer) as slack.url:
        yield slack


def signature(body: bytes, secret: str, at: float) -> dict[str, str]:
    """Returns the headers with which Slack signs a body."""
    signed = hmac.new(secret.encode(), f"v0:{int(at)}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": str(int(at)), "X-Slack-Signature": f"v0={signed}"}


def buttons(payload: dict[str, Any]) -> list[dict[str, Any]]:
    return [element for block in payload["blocks"] if block["type"] == "actions" for element in block["elements"]]


def texts(payload: dict[str, Any]) -> str:
    """Returns all text of a message that a reader sees."""
    found: list[str] = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("text"), str):
                found.append(part["text"])
            for value in part.values():
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)

    walk(payload.get("blocks") or [])
    return "\n".join(found)


def pings(payload: Any) -> list[str]:
    """Returns the parts of a message that would ping somebody."""
    if isinstance(payload, list):
        return [ping for part in payload for ping in pings(part)]
    if not isinstance(payload, dict):
        return []
    found = [str(payload)] if payload.get("type") in ("user", "usergroup", "broadcast", "channel") else []
    text = payload.get("text")
    if isinstance(text, str) and payload.get("type") in (None, "mrkdwn") and (_PINGS.search(text) or "@here" in text):
        found.append(text)
    return found + [ping for value in payload.values() for ping in pings(value)]


def problem_with(payload: dict[str, Any]) -> str | None:
    """Returns Slack's error code for a message, or None if Slack accepts it."""
    blocks = payload.get("blocks")
    if not blocks and not payload.get("text"):
        return "no_text"
    if len(payload.get("text", "")) > 40_000:
        return "msg_too_long"
    if blocks is not None and (len(blocks) > 50 or not all(map(_is_block, blocks))):
        return "invalid_blocks"
    if len(json.dumps(blocks, ensure_ascii=False)) > 13_200:
        return "msg_blocks_too_long"
    return None


def problem_with_view(view: dict[str, Any]) -> str | None:
    short = [view.get(name) for name in ("title", "submit", "close")]
    well = view.get("type") == "modal" and all(_is_text(part, 24) for part in short)
    known = {"input", "context", "section"}
    inside = len(view["blocks"]) <= 100 and all(block["type"] in known for block in view["blocks"])
    return None if well and inside and len(view.get("private_metadata", "")) <= 3000 else "invalid_arguments"


def _is_block(block: dict[str, Any]) -> bool:
    match block.get("type"):
        case "header":
            return _is_text(block.get("text"), 150)
        case "section":
            return _is_text(block.get("text"), 3000, ("plain_text", "mrkdwn"))
        case "context":
            elements = block.get("elements", [])
            return 1 <= len(elements) <= 10 and all(_is_text(e, 3000, ("plain_text", "mrkdwn")) for e in elements)
        case "actions":
            elements = block.get("elements", [])
            return 1 <= len(elements) <= 25 and all(map(_is_button, elements))
        case "rich_text":
            return bool(block.get("elements")) and all(map(_is_rich, block["elements"]))
        case "divider":
            return True
    return False


def _is_text(text: Any, most: int, kinds: tuple[str, ...] = ("plain_text",)) -> bool:
    return isinstance(text, dict) and text.get("type") in kinds and 1 <= len(text.get("text", "")) <= most


def _is_button(button: dict[str, Any]) -> bool:
    sizes = (("value", 2000), ("url", 3000), ("action_id", 255))
    return (
        button.get("type") == "button"
        and _is_text(button.get("text"), 75)
        and all(len(button.get(name, "")) <= most for name, most in sizes)
    )


def _is_rich(part: dict[str, Any]) -> bool:
    inside = part.get("elements", [])
    known = part.get("type") in ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
    return known and bool(inside) and all(e.get("type") == "text" and e.get("text") for e in inside)


def _json(content: dict[str, Any], status: int = 200) -> Told:
    return Told(json.dumps(content).encode(), status)
